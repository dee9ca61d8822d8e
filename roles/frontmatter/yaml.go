package frontmatter

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"wf/protocol"
	"wf/protocol/lazy"
)

// A reader turns YAML nodes into values of JSON, by the core schema of YAML 1.2 (section 10.3).
type reader struct{ nodes int }

func fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("the fields, line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

func (r *reader) value(n *yaml.Node, depth int) (v any, err error) {
	if r.nodes++; r.nodes > MaxNodes {
		return nil, fail(n, "more than %d values", MaxNodes)
	}
	if depth > protocol.JSONMaxDepth {
		return nil, fail(n, "nested deeper than %d", protocol.JSONMaxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.value(n.Content[0], depth)
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if list[i], err = r.value(item, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, fail(n, "neither a value, a list nor a mapping")
}

func (r *reader) mapping(n *yaml.Node, depth int) (v any, err error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fail(key, "a name must be plain text")
		}
		name := strings.ToValidUTF8(key.Value, "�")
		if _, known := m[name]; known {
			return nil, fail(key, "the name %q appears twice", clip(key.Value))
		}
		if m[name], err = r.value(n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

var (
	decimal = lazy.Regexp(`^[-+]?[0-9]+$`)
	radix   = lazy.Regexp(`^(0o[0-7]+|0x[0-9a-fA-F]+)$`)
	float   = lazy.Regexp(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	special = lazy.Regexp(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// plainStyles are the styles in which a scalar is quoted or a block, and so text.
const plainStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func scalar(n *yaml.Node) (any, error) {
	v := n.Value
	tagged := n.Style&yaml.TaggedStyle != 0
	if n.Style&plainStyles != 0 && !tagged || tagged && n.ShortTag() == "!!str" {
		return strings.ToValidUTF8(v, "�"), nil
	}
	if tagged {
		switch n.ShortTag() {
		case "!!int", "!!float", "!!bool", "!!null":
		default:
			return nil, fail(n, "the tag %s is not supported", clip(n.Tag))
		}
	}
	switch {
	case v == "", v == "~", v == "null", v == "Null", v == "NULL":
		return nil, nil
	case v == "true", v == "True", v == "TRUE":
		return true, nil
	case v == "false", v == "False", v == "FALSE":
		return false, nil
	case decimal().MatchString(v), radix().MatchString(v):
		base := 0
		if decimal().MatchString(v) {
			base = 10
		}
		if i, err := strconv.ParseInt(v, base, 64); err == nil && i <= protocol.MaxSafeInt && i >= -protocol.MaxSafeInt {
			return i, nil
		}
	case float().MatchString(v):
		if f, err := strconv.ParseFloat(v, 64); err == nil && f <= protocol.MaxSafeInt && f >= -protocol.MaxSafeInt {
			return f, nil
		}
	case special().MatchString(v):
		return nil, fail(n, "%s is no number of JSON", v)
	default:
		return strings.ToValidUTF8(v, "�"), nil
	}
	return nil, fail(n, "the number %s lies beyond ±(2^53−1); write it in quotes", clip(v))
}

// Line is the place of a value in a YAML text: the line, from 1, of what the path leads to, by
// names of fields and places in lists; 0 where that is not known.
func Line(text string, path ...string) int {
	var doc yaml.Node
	if len(text) > MaxFields || unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
		return 0
	}
	at := doc.Content[0]
	for _, step := range path {
		if at = child(at, step); at == nil {
			return 0
		}
	}
	return at.Line
}

// child is the value of a field, or the element of a list.
func child(n *yaml.Node, step string) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}
