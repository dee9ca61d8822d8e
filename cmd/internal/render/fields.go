package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"wf/protocol"
)

// A field is one value of an object, for people.
type field struct {
	name  string
	value json.RawMessage
}

// fieldsOf lists the fields of an object by name.
func fieldsOf(object json.RawMessage) ([]field, error) {
	var all map[string]json.RawMessage
	if len(object) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	var out []field
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, field{name, all[name]})
	}
	return out, nil
}

// text is a string as it is, everything else as JSON.
func (f field) text() string {
	var s string
	if bytes.HasPrefix(f.value, []byte(`"`)) && json.Unmarshal(f.value, &s) == nil {
		return Visible(s)
	}
	return Visible(string(f.value))
}

func noOutputs(object protocol.JSON) bool {
	fields, err := fieldsOf(object)
	return err == nil && len(fields) == 0
}

// showFields writes the fields of an object, one per line, texts of several lines indented.
func (p *Printer) showFields(indent string, object protocol.JSON) error {
	fields, err := fieldsOf(object)
	if err != nil {
		return err
	}
	for _, f := range fields {
		fmt.Fprintf(p.Out, "%s  %s %s\n", indent, p.Out.Bold(f.name+":"), IndentLines(f.text(), indent+"    "))
	}
	return nil
}
