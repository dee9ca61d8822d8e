package lang

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"wf/protocol"
)

type inputCode struct {
	decl protocol.Input
	def  any // default, where decl.Default is set
	enum []any
}

func compileInput(in protocol.Input) (*inputCode, error) {
	c := &inputCode{decl: in}
	var err error
	if in.Default != "" {
		if c.def, err = DecodeJSON([]byte(in.Default)); err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
	}
	if in.Enum != "" {
		v, err := DecodeJSON([]byte(in.Enum))
		if err != nil {
			return nil, fmt.Errorf("enum: %w", err)
		}
		list, ok := v.([]any)
		if !ok {
			return nil, errors.New("enum: not a list")
		}
		c.enum = list
	}
	return c, nil
}

// fits reports why v is no value of the input, "" if it is one.
func (c *inputCode) fits(v any) string {
	if c.decl.Type != "" && !isType(c.decl.Type, v) {
		return fmt.Sprintf("wants %s, got %s", protocol.Article(c.decl.Type), typeName(v))
	}
	if c.enum == nil {
		return ""
	}
	names := make([]string, len(c.enum))
	for i, e := range c.enum {
		if reflect.DeepEqual(e, v) {
			return ""
		}
		b, _ := json.Marshal(e)
		names[i] = string(b)
	}
	return fmt.Sprintf("wants one of %s, got %s", strings.Join(names, ", "), typeName(v))
}

// isType reports whether a JSON value is of a JSON Schema type.
func isType(typ string, v any) bool {
	switch v := v.(type) {
	case nil:
		return typ == "null"
	case bool:
		return typ == "boolean"
	case string:
		return typ == "string"
	case int:
		return typ == "integer" || typ == "number"
	case float64:
		return typ == "number" || typ == "integer" && v == math.Trunc(v)
	case []any:
		return typ == "array"
	case map[string]any:
		return typ == "object"
	}
	return false
}

// Inputs checks what a run is started with and fills in the defaults: a canonical JSON
// object. An optional input that was not given is left out; expressions see it as null. Values are JSON values, json.RawMessage, or anything that marshals to JSON. Every
// problem is reported at once; the error wraps protocol.ErrInputs.
func (p *Program) Inputs(given map[string]any) (json.RawMessage, error) {
	var problems []string
	out := map[string]any{}
	for _, name := range sortedKeys(given) {
		in, ok := p.inputs[name]
		if !ok {
			msg := fmt.Sprintf("input %q is not declared", name)
			if near := nearest(name, sortedKeys(p.inputs)); near != "" {
				msg += fmt.Sprintf(" (did you mean %q?)", near)
			}
			problems = append(problems, msg)
			continue
		}
		v, err := asJSON(given[name])
		if err != nil {
			problems = append(problems, fmt.Sprintf("input %q: %v", name, err))
			continue
		}
		if why := in.fits(v); why != "" {
			problems = append(problems, fmt.Sprintf("input %q %s", name, why))
			continue
		}
		out[name] = v
	}
	for _, name := range sortedKeys(p.inputs) {
		if _, ok := given[name]; ok {
			continue
		}
		if in := p.inputs[name]; in.decl.Default != "" {
			out[name] = in.def
		} else if in.decl.Required {
			problems = append(problems, fmt.Sprintf("input %q is missing%s", name, inputHint(in.decl)))
		}
	}
	if problems != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(problems, "; "), protocol.ErrInputs)
	}
	b, err := protocol.CanonicalJSON(out)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, protocol.ErrInputs)
	}
	return b, nil
}

func inputHint(in protocol.Input) string {
	said := slices.DeleteFunc([]string{in.Type, in.Description}, func(s string) bool { return s == "" })
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ": ") + ")"
}

// asJSON brings a given value to a JSON value.
func asJSON(v any) (any, error) {
	b, err := protocol.CanonicalJSON(v)
	if err != nil {
		return nil, err
	}
	return DecodeJSON(b)
}

// Coerce reads the text of a command line, as in -i name=text, by the declared type of the
// input: a string is taken as it is, everything else is JSON. An undeclared input stays a
// string; Inputs will name it. The error wraps protocol.ErrInputs.
func (p *Program) Coerce(name, text string) (any, error) {
	in, ok := p.inputs[name]
	if !ok || in.decl.Type == "string" {
		return text, nil
	}
	bad := func() error {
		return fmt.Errorf("input %q wants %s, got %q: %w", name, protocol.Article(in.decl.Type), text, protocol.ErrInputs)
	}
	switch in.decl.Type {
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "1":
			return true, nil
		case "false", "no", "0":
			return false, nil
		}
		return nil, bad()
	case "integer":
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, bad()
		}
		return int(i), nil
	}
	v, err := DecodeJSON([]byte(text))
	switch {
	case in.decl.Type == "" && err != nil:
		return text, nil // an input of any type: what is no JSON is text
	case err != nil || in.decl.Type != "" && !isType(in.decl.Type, v):
		return nil, bad()
	}
	return v, nil
}
