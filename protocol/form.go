package protocol

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// FormOrder is the key of a form that lists the names of its fields as they were written. The
// form of a definition is canonical JSON, which sorts them; the one that a waiting event holds
// has the order of the file the run was started with, unless it is that of the names.
const FormOrder = "x-order"

// FormField is a value that a question asks for, one property of the JSON Schema of its form.
type FormField struct {
	Name        string
	Description string
	Type        string // string, integer, number, boolean, array, object; "" is any, or one of several
	Required    bool
	Enum        []JSON // what it may be; none is anything
	Default     JSON   // nil is none
	Minimum     JSON   // of a number; nil is none
}

// FormFields are the fields of a form in their order: FormOrder; what that leaves out follows
// as required lists it, then by name. A form that is no JSON object has none.
func FormFields(form string) []FormField {
	var schema struct {
		Order      []string `json:"x-order"`
		Required   []string `json:"required"`
		Properties map[string]struct {
			Description string `json:"description"`
			Type        JSON   `json:"type"`
			Enum        []JSON `json:"enum"`
			Default     JSON   `json:"default"`
			Minimum     JSON   `json:"minimum"`
		} `json:"properties"`
	}
	if form == "" || json.Unmarshal([]byte(form), &schema) != nil {
		return nil
	}
	order := slices.Concat(schema.Order, schema.Required)
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	names := slices.SortedFunc(maps.Keys(schema.Properties), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
	var out []FormField
	for _, name := range names {
		p := schema.Properties[name]
		f := FormField{Name: name, Description: p.Description, Required: slices.Contains(schema.Required, name),
			Enum: p.Enum, Default: p.Default, Minimum: p.Minimum}
		if json.Unmarshal(p.Type, &f.Type) != nil {
			f.Type = ""
		}
		out = append(out, f)
	}
	return out
}

// OrderedForm is a form with the order in which its fields were written. It stays as it is
// where that is the order of their names, or where it says an order itself.
func OrderedForm(form string, written []string) string {
	var schema map[string]JSON
	if len(written) == 0 || slices.IsSorted(written) || json.Unmarshal([]byte(form), &schema) != nil || schema[FormOrder] != nil {
		return form
	}
	order, err := json.Marshal(written)
	if err != nil {
		return form // strings always marshal
	}
	schema[FormOrder] = order
	out, err := CanonicalJSON(schema)
	if err != nil {
		return form // it was canonical JSON
	}
	return string(out)
}

// Read is a text as the type of the field wants it. What does not fit stays a text, for the
// form to refuse in its own words.
func (f FormField) Read(text string) any {
	for _, v := range f.Enum {
		if text == JSONText(v) {
			return v
		}
	}
	if f.Type == "string" {
		return text
	}
	if f.Type == "boolean" {
		switch strings.ToLower(text) {
		case "y", "yes":
			return true
		case "n", "no":
			return false
		}
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return text
	}
	return v
}

// Example is a value that the type of the field takes: its default, the first it may be, or
// one of that type.
func (f FormField) Example() string {
	switch {
	case len(f.Default) > 0:
		return JSONText(f.Default)
	case len(f.Enum) > 0:
		return JSONText(f.Enum[0])
	case len(f.Minimum) > 0:
		return JSONText(f.Minimum)
	}
	switch f.Type {
	case "integer", "number":
		return "1"
	case "boolean":
		return "true"
	case "array":
		return "[]"
	case "object":
		return "{}"
	}
	return "…"
}

// JSONText is a string as it is, every other value as JSON.
func JSONText(v JSON) string {
	var s string
	if json.Unmarshal(v, &s) == nil && strings.HasPrefix(strings.TrimSpace(string(v)), `"`) {
		return s
	}
	return string(v)
}
