package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"wf/cmd/internal/plain"
)

// Field is a value that a question asks for.
type Field struct {
	Name     string
	Type     string // string, integer, number, boolean, …; "" is any
	Required bool
	Enum     []string // what it may be, empty is anything
}

// fieldsOf reads the fields of a form, a JSON Schema of an object: the required ones first.
func fieldsOf(schema string) []Field {
	var form struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type json.RawMessage   `json:"type"`
			Enum []json.RawMessage `json:"enum"`
		} `json:"properties"`
	}
	if schema == "" || json.Unmarshal([]byte(schema), &form) != nil {
		return nil
	}
	var out []Field
	for name, p := range form.Properties {
		f := Field{Name: name, Required: slices.Contains(form.Required, name)}
		if json.Unmarshal(p.Type, &f.Type) != nil {
			f.Type = "" // one of several
		}
		for _, v := range p.Enum {
			text := string(v)
			var s string
			if json.Unmarshal(v, &s) == nil {
				text = s
			}
			f.Enum = append(f.Enum, text)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Field) int {
		if a.Required != b.Required {
			return map[bool]int{true: -1, false: 1}[a.Required]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// String is the field as the screen asks for it.
func (f Field) String() string {
	text := plain.Text(f.Name)
	switch {
	case len(f.Enum) > 0:
		text += "=" + plain.Line(plain.Text(strings.Join(f.Enum, "|")), 60)
	case f.Type != "" && f.Type != "string":
		text += "=" + plain.Text(f.Type)
	}
	if !f.Required {
		text = "[" + text + "]"
	}
	return text
}

// fill reads the fields that were written: name=value, one on a line. Where there is one field
// alone, or one alone is required, its name may be left out.
func fill(fields []Field, text string) (map[string]any, error) {
	lines := strings.Split(text, "\n")
	if len(lines) == 1 || !strings.Contains(lines[0], "=") {
		if name, _, ok := strings.Cut(text, "="); (!ok || find(fields, name) == nil) && (len(fields) == 1 || !fields[1].Required) {
			return map[string]any{fields[0].Name: fields[0].value(text)}, nil
		}
	}
	out := map[string]any{}
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		name, value, ok := strings.Cut(l, "=")
		f := find(fields, name)
		if !ok || f == nil {
			return nil, fmt.Errorf("%q is none of the fields; write name=value, one on a line", plain.Line(plain.Text(l), 40))
		}
		out[f.Name] = f.value(strings.TrimSpace(value))
	}
	return out, nil
}

func find(fields []Field, name string) *Field {
	for i := range fields {
		if fields[i].Name == strings.TrimSpace(name) {
			return &fields[i]
		}
	}
	return nil
}

// value is a text as the type of the field wants it. What does not fit stays a text, and is
// refused with the form's own words.
func (f Field) value(text string) any {
	if f.Type == "string" {
		return text
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return text
	}
	return v
}
