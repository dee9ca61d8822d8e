package lang

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"wf/protocol"
)

// SchemaPart is the part of JSONSchema at a dotted path of property names, through references, items and the
// values of maps; where the path begins with suite, of SuiteSchema.
func SchemaPart(dotted string) (any, error) {
	var root map[string]any
	file, within := JSONSchema(), dotted
	if rest, ok := strings.CutPrefix(dotted, "suite."); ok {
		file, within = SuiteSchema(), rest
	}
	if err := json.Unmarshal(file, &root); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	definitions := member(root, "definitions")
	at := root
	for i, name := range strings.Split(within, ".") {
		next := property(definitions, at, name)
		if next == nil && i == 0 {
			next = member(definitions, name)
		}
		if next == nil {
			return nil, protocol.ErrUsage.With("wf schema shows the whole", "the schema has no %s at %q", name, dotted)
		}
		at = next
	}
	return at, nil
}

// member is the object under a name, or nil.
func member(m map[string]any, name string) map[string]any {
	sub, _ := m[name].(map[string]any)
	return sub
}

// property is the schema of a name below at, or nil.
func property(definitions, at map[string]any, name string) map[string]any {
	at = deref(definitions, at)
	if p := member(member(at, "properties"), name); p != nil {
		return deref(definitions, p)
	}
	choices, _ := at["anyOf"].([]any)
	for _, sub := range append([]any{at["items"], at["additionalProperties"]}, choices...) {
		if sub, ok := sub.(map[string]any); ok {
			if p := property(definitions, sub, name); p != nil {
				return p
			}
		}
	}
	return nil
}

// deref follows a reference to a definition; none of those is a reference itself.
func deref(definitions, at map[string]any) map[string]any {
	if ref, ok := at["$ref"].(string); ok {
		return member(definitions, path.Base(ref))
	}
	return at
}
