package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// yaml are the components of a document. That of the hub adds to the one of the server.
func (g *generator) yaml(document string) []byte {
	var b bytes.Buffer
	for _, name := range sorted(g.components) {
		c, required, props := g.components[name], []string{}, ""
		more := c.written // described already, but for what the hub alone has
		for _, p := range c.props {
			if p.hub && document != ofHub || more && !p.hub {
				continue
			}
			if p.required {
				required = append(required, p.name)
			}
			props += fmt.Sprintf("        %s: %s\n", p.name, flow(p.schema, p.doc))
		}
		c.written = true
		switch {
		case more && props == "":
			continue
		case c.other != nil:
			fmt.Fprintf(&b, "    %s: %s\n", name, flow(c.other, c.doc))
			continue
		}
		fmt.Fprintf(&b, "    %s:\n", name)
		if !more {
			fmt.Fprintf(&b, "      type: object\n      description: %s\n", text(c.doc))
			if len(required) > 0 {
				fmt.Fprintf(&b, "      required: [%s]\n", strings.Join(required, ", "))
			}
			if c.request {
				b.WriteString("      additionalProperties: false\n")
			}
		}
		b.WriteString("      properties:\n" + props)
	}
	return b.Bytes()
}

// flow is a schema with its description in one line of JSON, which is YAML.
func flow(s schema, doc string) string {
	if doc != "" {
		s = maps.Clone(s)
		s["description"] = doc
	}
	return text(s)
}

// text is a value in one line of JSON.
func text(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must(0, enc.Encode(v))
	return strings.TrimSpace(b.String())
}

// typeScript declares the components of both documents.
func (g *generator) typeScript() []byte {
	b := bytes.NewBufferString("// Written by go run ./hub/server/schemas (make update) from the Go types: change those.\n")
	for _, name := range sorted(g.components) {
		c := g.components[name]
		fmt.Fprintf(b, "\n/** %s */\n", c.doc)
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
func script(v any) string {
	s, _ := v.(schema)
	kind := s["type"]
	switch {
	case s["$ref"] != nil:
		return reference.FindStringSubmatch(s["$ref"].(string))[1]
	case s["const"] != nil:
		return text(s["const"])
	case s["enum"] != nil:
		return union(s["enum"], text)
	case s["oneOf"] != nil:
		return union(s["oneOf"], script)
	case kind == nil:
		return "unknown"
	case kind == "integer":
		return "number"
	case kind == "array":
		return "Array<" + script(s["items"]) + ">"
	case kind == "object":
		return "Record<string, " + script(s["additionalProperties"]) + ">"
	}
	if _, one := kind.(string); one {
		return kind.(string)
	}
	return union(kind, func(one any) string {
		s := maps.Clone(s)
		s["type"] = one
		return script(s)
	})
}

// union is any type of a list.
func union(list any, one func(any) string) string {
	var parts []string
	for _, x := range list.([]any) {
		parts = append(parts, one(x))
	}
	return strings.Join(parts, " | ")
}
