package lang

import (
	"cmp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/types"

	"wf/engine/lint"
	"wf/protocol"
)

// typ is what is known of a value before anything runs.
type typ struct {
	kind   typeKind
	fields map[string]*typ // of an object
	open   bool            // an object that may have other fields
	elem   *typ            // of a list
	enum   []any           // the only values, where the schema says so
}

type typeKind int

const (
	tAny typeKind = iota
	tBool
	tInt
	tFloat
	tString
	tList
	tObject
)

var (
	anyT    = &typ{}
	boolT   = &typ{kind: tBool}
	intT    = &typ{kind: tInt}
	floatT  = &typ{kind: tFloat}
	stringT = &typ{kind: tString}
	openT   = &typ{kind: tObject, open: true}
)

// plainTypes are those of JSON Schema that have no parts.
var plainTypes = map[string]*typ{"boolean": boolT, "integer": intT, "number": floatT, "string": stringT}

func objectType(fields map[string]*typ) *typ { return &typ{kind: tObject, fields: fields} }

func listType(elem *typ) *typ { return &typ{kind: tList, elem: elem} }

// expr is t as the type checker of expr knows it.
func (t *typ) expr() types.Type {
	switch t.kind {
	case tBool:
		return types.Bool
	case tInt:
		return types.Int
	case tFloat:
		return types.Float64
	case tString:
		return types.String
	case tList:
		return types.Array(t.elem.expr())
	case tObject:
		m := types.Map{}
		for name, f := range t.fields {
			m[name] = f.expr()
		}
		if t.open {
			m[types.Extra] = types.Any
		}
		return m
	}
	return types.Any
}

// schemaType is the type that a JSON Schema gives. Properties close an object unless
// additionalProperties opens it again: a field that is not declared is a typo.
func schemaType(v any) *typ {
	m, ok := v.(map[string]any)
	if !ok {
		return anyT
	}
	for _, k := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "not"} {
		if _, ok := m[k]; ok {
			return anyT
		}
	}
	enum, _ := m["enum"].([]any)
	if c, ok := m["const"]; ok {
		enum = []any{c}
	}
	t := namedType(m, enum)
	if len(enum) > 0 && t.kind != tAny {
		c := *t
		c.enum = enum
		t = &c
	}
	return t
}

func namedType(m map[string]any, enum []any) *typ {
	name, ok := m["type"].(string)
	if !ok {
		return enumType(enum)
	}
	switch name {
	case "array":
		if items, ok := m["items"]; ok {
			return listType(schemaType(items))
		}
		return listType(anyT)
	case "object":
		return objectSchema(m)
	}
	return cmp.Or(plainTypes[name], anyT)
}

func objectSchema(m map[string]any) *typ {
	props, ok := m["properties"].(map[string]any)
	if !ok {
		return openT
	}
	t := objectType(map[string]*typ{})
	for name, p := range props {
		t.fields[name] = schemaType(p)
	}
	switch extra := m["additionalProperties"].(type) {
	case bool:
		t.open = extra
	case map[string]any:
		t.open = true
	}
	if _, ok := m["patternProperties"]; ok {
		t.open = true
	}
	return t
}

// enumType is the common type of the values of an enum.
func enumType(enum []any) *typ {
	if len(enum) == 0 {
		return anyT
	}
	t := valueType(enum[0])
	for _, v := range enum[1:] {
		if valueType(v).kind != t.kind {
			return anyT
		}
	}
	if t.kind == tList || t.kind == tObject {
		return anyT
	}
	return t
}

// valueType is the type of a constant.
func valueType(v any) *typ {
	switch v := v.(type) {
	case bool:
		return boolT
	case int:
		return intT
	case float64:
		return floatT
	case string:
		if pieces, _, err := lint.Split(strings.TrimSpace(v)); err == nil && len(pieces) == 1 && pieces[0].Expr {
			return anyT
		}
		return stringT
	case []any:
		if len(v) == 0 {
			return listType(anyT)
		}
		t := valueType(v[0])
		for _, e := range v[1:] {
			t = t.merge(valueType(e))
		}
		return listType(t)
	case map[string]any:
		t := objectType(map[string]*typ{})
		for k, e := range v {
			t.fields[k] = valueType(e)
		}
		return t
	}
	return anyT
}

// merge is the type of a value that has one of two types.
func (t *typ) merge(o *typ) *typ {
	switch {
	case t == o:
		return t
	case t == nil:
		return o
	case o == nil:
		return t
	case t.kind != o.kind:
		return anyT
	case t.kind == tList:
		return listType(t.elem.merge(o.elem))
	case t.kind == tObject:
		m := &typ{kind: tObject, fields: map[string]*typ{}, open: t.open || o.open}
		for k, f := range t.fields {
			m.fields[k] = f.merge(o.fields[k])
		}
		for k, f := range o.fields {
			if m.fields[k] == nil {
				m.fields[k] = f
			}
		}
		return m
	case len(t.enum) > 0 && len(o.enum) > 0:
		c := *t
		c.enum = append(slices.Clone(t.enum), o.enum...)
		return &c
	}
	return &typ{kind: t.kind}
}

// inputType is what an input can be.
func inputType(in protocol.Input) *typ {
	m := map[string]any{}
	if in.Type != "" {
		m["type"] = in.Type
	}
	if v, err := DecodeJSON([]byte(in.Enum)); err == nil {
		m["enum"] = v
	}
	return schemaType(m)
}

// outputType is what one visit of a role yields.
func (l *loader) outputType(r *protocol.Role) *typ {
	t := declared(r.Output)
	add := func(name string, f *typ) {
		if _, ok := t.fields[name]; !ok {
			t.fields[name] = f
		}
	}
	switch r.Action {
	case protocol.ActPrompt:
		add("text", stringT)
		add("body", stringT)
		if r.Context == protocol.ContextTask {
			addTask(t, r.Output != "")
		}
	case protocol.ActRun:
		add("exit_code", intT)
		add("text", stringT)
	case protocol.ActAsk:
		t = declared(r.Form)
		choice := stringT
		if len(r.Choices) > 0 {
			choice = &typ{kind: tString}
			for _, c := range r.Choices {
				choice.enum = append(choice.enum, c.Value)
			}
		}
		add("choice", choice)
		add("text", stringT)
	case protocol.ActSet:
		for _, v := range r.Set {
			add(v.Name, templateType(v))
		}
	case protocol.ActWorkflow:
		child := l.children[r.Workflow]
		if child == nil {
			return openT // its file has errors of its own
		}
		for _, v := range child.Workflow.Outputs {
			add(v.Name, templateType(v))
		}
		if r.Context == protocol.ContextTask {
			addTask(t, true)
		}
	case protocol.ActMerge:
		return mergeType()
	case protocol.ActWait:
		add("text", stringT)
		if t.open = r.Wait != nil && r.Wait.Signal != ""; !t.open {
			add("fired", boolT)
		}
	default:
		return openT // no action, reported as such
	}
	return t
}

// addTask adds what every task yields: among the fields, or below the key task.
func addTask(t *typ, nested bool) {
	if nested {
		own := objectType(map[string]*typ{})
		t.fields["task"], t = own, own
	}
	for _, name := range []string{"goal", "status", "state", "question", "summary"} {
		t.fields[name] = stringT
	}
	t.fields["shared"] = openT
}

// declared is the type of a stored schema, as a fresh object.
func declared(schema string) *typ {
	v, err := DecodeJSON([]byte(schema))
	t := schemaType(v)
	switch {
	case err != nil: // there is none
		return objectType(map[string]*typ{})
	case t.kind != tObject || t.fields == nil:
		return &typ{kind: tObject, fields: map[string]*typ{}, open: true}
	}
	return t
}

func templateType(v protocol.NamedTemplate) *typ {
	if v.JSON == "" {
		return valueType(v.Value)
	}
	x, err := DecodeJSON([]byte(v.JSON))
	if err != nil {
		return anyT
	}
	return valueType(x)
}
