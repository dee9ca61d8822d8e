package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// yaml are the components of a document. That of the hub adds to the one of the server.
func (g *generator) yaml(document string) []byte {
	var b bytes.Buffer
	for _, name := range sorted(g.components) {
		c, required, props := g.components[name], []string{}, ""
		more := c.written != "" // described already, but for what the hub alone has
		for _, p := range c.props {
			if p.hub && document != ofHub || more && !p.hub {
				continue
			}
			if p.required {
				required = append(required, p.name)
			}
			props += fmt.Sprintf("        %s: %s\n", p.name, flow(p.schema, p.doc))
		}
		switch {
		case more && props == "":
			continue
		case c.other != nil:
			fmt.Fprintf(&b, "    %s: %s\n", name, flow(c.other, c.made.doc))
		case more:
			fmt.Fprintf(&b, "    %s:\n      properties:\n%s", name, props)
		default:
			fmt.Fprintf(&b, "    %s:\n      type: object\n      description: %s\n", name, flow(c.made.doc, ""))
			if len(required) > 0 {
				fmt.Fprintf(&b, "      required: [%s]\n", strings.Join(required, ", "))
			}
			if c.request {
				b.WriteString("      additionalProperties: false\n")
			}
			b.WriteString("      properties:\n" + props)
		}
		c.written = document
	}
	return b.Bytes()
}

// flow is a value in one line of JSON, which is YAML; a schema with its description.
func flow(v any, doc string) string {
	if s, ok := v.(schema); ok && doc != "" {
		v = schema{"description": doc}
		for key, x := range s {
			v.(schema)[key] = x
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // maps, lists and texts can be encoded
	}
	return strings.TrimSpace(b.String())
}

// typeScript declares the components of both documents.
func (g *generator) typeScript() []byte {
	b := bytes.NewBufferString("// Written by go run ./hub/server/schemas (make update) from the Go types: change those.\n")
	for _, name := range sorted(g.components) {
		c := g.components[name]
		fmt.Fprintf(b, "\n/** %s */\n", c.made.doc)
		if c.other != nil {
			fmt.Fprintf(b, "export type %s = %s;\n", name, script(c.other))
			continue
		}
		fmt.Fprintf(b, "export interface %s {\n", name)
		for _, p := range c.props {
			optional := "?"
			if p.required {
				optional = ""
			}
			fmt.Fprintln(b, strings.TrimSuffix(fmt.Sprintf("  %s%s: %s; // %s", p.name, optional, script(p.schema), p.doc), " // "))
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

// script is a schema as a type of TypeScript.
func script(s schema) string {
	either := func(list any, one func(any) string) string {
		var parts []string
		for _, x := range list.([]any) {
			parts = append(parts, one(x))
		}
		return strings.Join(parts, " | ")
	}
	inner := func(key string) string { x, _ := s[key].(schema); return script(x) }
	switch kind := s["type"]; {
	case s["$ref"] != nil:
		return reference.FindStringSubmatch(s["$ref"].(string))[1]
	case s["const"] != nil:
		return flow(s["const"], "")
	case s["enum"] != nil:
		return either(s["enum"], func(v any) string { return flow(v, "") })
	case s["oneOf"] != nil:
		return either(s["oneOf"], func(v any) string { return script(v.(schema)) })
	case kind == nil:
		return "unknown"
	case kind == "integer":
		return "number"
	case kind == "array":
		return "Array<" + inner("items") + ">"
	case kind == "object":
		return "Record<string, " + inner("additionalProperties") + ">"
	default:
		if one, ok := kind.(string); ok {
			return one
		}
		return either(kind, func(k any) string {
			return script(schema{"type": k, "items": s["items"], "additionalProperties": s["additionalProperties"]})
		})
	}
}
