package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
		return visible(s)
	}
	return visible(string(f.value))
}

// indentLines sets all lines but the first of a text in.
func indentLines(s, indent string) string {
	return strings.ReplaceAll(strings.TrimRight(visible(s), "\n"), "\n", "\n"+indent)
}
