package lang

import (
	"bytes"
	"encoding/json"
)

// JSONSchema is the grammar as JSON Schema draft-07, for editors: yaml-language-server and
// JetBrains read it. It is made from the table that the parser uses, so it knows every key;
// what refers from one part of a file to another only Load checks.
func JSONSchema() []byte {
	g := grammar()
	root := g.schema(g.workflow)
	definitions := map[string]any{}
	for s, name := range g.named() {
		definitions[name] = g.schema(s)
	}
	root["definitions"] = definitions
	return schemaFile(root, "v1", "wf workflow")
}

// SuiteSchema is the grammar of the suites of wf eval, as JSONSchema is that of workflows. What a suite says of its workflow only ReadSuite
// checks.
func SuiteSchema() []byte {
	return schemaFile(new(language).schema(suiteGrammar()), "suite-v1", "wf eval suite")
}

// schemaFile is the schema of a file, with what stands at its top.
func schemaFile(root map[string]any, id, title string) []byte {
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["$id"] = "https://wf.invalid/schema/" + id + ".json"
	root["title"] = title
	root["patternProperties"] = map[string]any{"^x-": map[string]any{}}
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
func (g *language) named() map[*shape]string {
	return map[*shape]string{g.role: "role", g.edge: "edge", g.input: "input", g.defaults: "defaults"}
}

func (g *language) ref(s *shape) map[string]any {
	if name, ok := g.named()[s]; ok {
		return map[string]any{"$ref": "#/definitions/" + name}
	}
	return g.schema(s)
}

func (g *language) schema(s *shape) map[string]any {
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
		const pattern = `^([0-9]+(\.[0-9]*)?(h|m|s|ms|us|µs))+$`
		if s.zero {
			m["anyOf"] = []any{map[string]any{"type": "string", "pattern": pattern}, map[string]any{"enum": []any{0, "0"}}}
		} else {
			m["type"], m["pattern"] = "string", pattern
		}
	case aList:
		m["type"], m["items"] = "array", g.ref(s.elem)
		if s.nonEmpty {
			m["minItems"] = 1
		}
	case aMap:
		m["type"], m["additionalProperties"] = "object", g.ref(s.elem)
		if s.nonEmpty {
			m["minProperties"] = 1
		}
		if s.pattern != nil {
			m["propertyNames"] = map[string]any{"pattern": s.pattern().String()}
		}
	case anObject:
		g.objectSchema(s, m)
	case aSchema:
		m["type"], m["required"] = "object", []string{"type"}
		m["properties"] = map[string]any{"type": map[string]any{"const": "object"}}
	case oneOf:
		alts := make([]any, 0, len(s.alts)+1)
		for _, a := range s.alts {
			alts = append(alts, g.ref(a))
		}
		if s.null {
			alts = append(alts, map[string]any{"type": "null"})
		}
		m["anyOf"] = alts
	}
	return m
}

func (g *language) objectSchema(s *shape, m map[string]any) {
	props, required := map[string]any{}, []string{}
	for i := range s.keys {
		k := &s.keys[i]
		prop := g.ref(k.shape)
		if _, referred := prop["$ref"]; !referred {
			prop["description"] = k.hover()
		}
		props[k.name] = prop
		if k.required {
			required = append(required, k.name)
		}
	}
	m["type"], m["properties"], m["additionalProperties"] = "object", props, false
	if len(required) > 0 {
		m["required"] = required
	}
	if s != g.role {
		return
	}
	var one []any
	for _, a := range actions {
		one = append(one, map[string]any{"required": []string{string(a)}})
	}
	m["oneOf"] = one
}

// hover is what an editor shows of a key.
func (k *key) hover() string {
	out := k.doc
	if without := k.without(); without != "" {
		out += "\nDefault: " + without + "."
	}
	if k.example != "" {
		out += "\nExample: " + k.example
	}
	return out
}

// without is what holds where the key is left out.
func (k *key) without() string {
	switch {
	case k.more != "":
		return k.def + "; " + k.more
	case k.def != "":
		return k.def
	}
	return k.unset
}
