package lang

import (
	"encoding/json"
	"fmt"
	"strings"

	"wf/protocol"
)

// SchemaPart is the part of JSONSchema at a dotted path of property names, through references, items and the
// values of maps.
func SchemaPart(path string) (any, error) {
	var root map[string]any
	if err := json.Unmarshal(JSONSchema(), &root); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	at := root
	for i, name := range strings.Split(path, ".") {
		next := property(root, at, name)
		if next == nil && i == 0 {
			next = definitionOf(root, name)
		}
		if next == nil {
			return nil, protocol.ErrUsage.With("wf schema shows the whole", "the schema has no %s at %q", name, path)
		}
		at = next
	}
	return at, nil
}

// property is the schema of a name below at, or nil.
func property(root, at map[string]any, name string) map[string]any {
	at = deref(root, at)
	if props, ok := at["properties"].(map[string]any); ok {
		if p, ok := props[name].(map[string]any); ok {
			return deref(root, p)
		}
	}
	for _, through := range []string{"items", "additionalProperties"} {
		if sub, ok := at[through].(map[string]any); ok {
			if p := property(root, sub, name); p != nil {
				return p
			}
		}
	}
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := at[choice].([]any)
		for _, c := range list {
			if sub, ok := c.(map[string]any); ok {
				if p := property(root, sub, name); p != nil {
					return p
				}
			}
		}
	}
	return nil
}

func definitionOf(root map[string]any, name string) map[string]any {
	for _, key := range []string{"definitions", "$defs"} {
		if defs, ok := root[key].(map[string]any); ok {
			if d, ok := defs[name].(map[string]any); ok {
				return d
			}
		}
	}
	return nil
}

func deref(root, at map[string]any) map[string]any {
	for {
		ref, ok := at["$ref"].(string)
		if !ok {
			return at
		}
		target := definitionOf(root, ref[strings.LastIndex(ref, "/")+1:])
		if target == nil {
			return at
		}
		at = target
	}
}
