package lang

import (
	"bytes"
	"encoding/json"
)

// JSONSchema is the grammar as JSON Schema draft-07, for editors: yaml-language-server and
// JetBrains read it. It is made from the table that the parser uses, so it knows every key;
// what refers from one part of a file to another only Load checks.
func JSONSchema() []byte {
	root := workflowShape.schema()
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["$id"] = "https://wf.invalid/schema/v1.json"
	root["title"] = "wf workflow"
	root["patternProperties"] = map[string]any{"^x-": map[string]any{}}
	root["definitions"] = map[string]any{
		"role":     roleShape.schema(),
		"edge":     edgeShape.schema(),
		"input":    inputShape.schema(),
		"defaults": defaultsShape.schema(),
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic("lang: the grammar does not encode: " + err.Error())
	}
	return b.Bytes()
}

// named shapes are written once and referred to.
func (s *shape) ref() map[string]any {
	for name, named := range map[*shape]string{roleShape: "role", edgeShape: "edge", inputShape: "input", defaultsShape: "defaults"} {
		if name == s {
			return map[string]any{"$ref": "#/definitions/" + named}
		}
	}
	return s.schema()
}

func (s *shape) schema() map[string]any {
	m := map[string]any{}
	if s.doc != "" {
		m["description"] = s.doc
	}
	switch s.kind {
	case aString:
		m["type"] = "string"
		if s.enum != nil {
			m["enum"] = s.enum
		} else if !s.free {
			m["minLength"] = 1
		}
		if s.pattern != nil {
			m["pattern"] = s.pattern().String()
		}
	case aText:
		m["type"] = []string{"string", "number", "boolean"}
	case anExpr:
		m["type"] = []string{"string", "boolean"}
	case anInt:
		m["type"] = "integer"
		if s.only != 0 {
			m["const"] = s.only
		} else {
			m["minimum"] = s.min
		}
		if s.max != 0 {
			m["maximum"] = s.max
		}
	case aDecimal, aMoney:
		m["anyOf"] = []any{map[string]any{"type": "number", "exclusiveMinimum": 0}, map[string]any{"type": "string", "pattern": decimal().String()}}
	case aBool:
		m["type"] = "boolean"
	case aDuration:
		m["type"], m["pattern"] = "string", `^([0-9]+(\.[0-9]*)?(h|m|s|ms|us|µs))+$`
	case aList:
		m["type"], m["items"] = "array", s.elem.ref()
		if s.nonEmpty {
			m["minItems"] = 1
		}
	case aMap:
		m["type"], m["additionalProperties"] = "object", s.elem.ref()
		if s.nonEmpty {
			m["minProperties"] = 1
		}
		if s.pattern != nil {
			m["propertyNames"] = map[string]any{"pattern": s.pattern().String()}
		}
	case anObject:
		s.objectSchema(m)
	case aSchema:
		m["type"], m["required"] = "object", []string{"type"}
		m["properties"] = map[string]any{"type": map[string]any{"const": "object"}}
	case oneOf:
		alts := make([]any, 0, len(s.alts)+1)
		for _, a := range s.alts {
			alts = append(alts, a.ref())
		}
		if s.null {
			alts = append(alts, map[string]any{"type": "null"})
		}
		m["anyOf"] = alts
	}
	return m
}

func (s *shape) objectSchema(m map[string]any) {
	props, required := map[string]any{}, []string{}
	for _, k := range s.keys {
		props[k.name] = k.shape.ref()
		if k.required {
			required = append(required, k.name)
		}
	}
	m["type"], m["properties"], m["additionalProperties"] = "object", props, false
	if len(required) > 0 {
		m["required"] = required
	}
	if s != roleShape {
		return
	}
	var one []any
	for _, a := range actions {
		one = append(one, map[string]any{"required": []string{string(a)}})
	}
	m["oneOf"] = one
}
