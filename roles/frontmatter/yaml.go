package frontmatter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"wf/protocol"
	"wf/protocol/lazy"
)

// A writer turns YAML nodes into JSON, by the core schema of YAML 1.2 (section 10.3).
type writer struct {
	out   bytes.Buffer
	nodes int
}

func (w *writer) fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("the fields, line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

func (w *writer) value(n *yaml.Node, depth int) error {
	if w.nodes++; w.nodes > MaxNodes {
		return w.fail(n, "more than %d values", MaxNodes)
	}
	if depth > protocol.JSONMaxDepth {
		return w.fail(n, "nested deeper than %d", protocol.JSONMaxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.value(n.Content[0], depth)
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if err := w.value(item, depth+1); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
		return nil
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	return w.fail(n, "neither a value, a list nor a mapping")
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	known := make(map[string]bool, len(n.Content)/2)
	w.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return w.fail(key, "a name must be plain text")
		}
		if known[key.Value] {
			return w.fail(key, "the name %q appears twice", clip(key.Value))
		}
		known[key.Value] = true
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.text(key.Value)
		w.out.WriteByte(':')
		if err := w.value(value, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

var (
	decimal = lazy.Regexp(`^[-+]?[0-9]+$`)
	radix   = lazy.Regexp(`^(0o[0-7]+|0x[0-9a-fA-F]+)$`)
	float   = lazy.Regexp(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	special = lazy.Regexp(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// plainStyles are the styles in which a scalar is quoted or a block, and so text.
const plainStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func (w *writer) scalar(n *yaml.Node) error {
	v := n.Value
	tagged := n.Style&yaml.TaggedStyle != 0
	if n.Style&plainStyles != 0 && !tagged || tagged && n.ShortTag() == "!!str" {
		w.text(v)
		return nil
	}
	if tagged {
		switch n.ShortTag() {
		case "!!int", "!!float", "!!bool", "!!null":
		default:
			return w.fail(n, "the tag %s is not supported", clip(n.Tag))
		}
	}
	switch {
	case v == "", v == "~", v == "null", v == "Null", v == "NULL":
		w.out.WriteString("null")
	case v == "true", v == "True", v == "TRUE":
		w.out.WriteString("true")
	case v == "false", v == "False", v == "FALSE":
		w.out.WriteString("false")
	case decimal().MatchString(v):
		return w.integer(n, strings.TrimPrefix(v, "+"), 10)
	case radix().MatchString(v):
		return w.integer(n, v, 0)
	case float().MatchString(v):
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f > protocol.MaxSafeInt || f < -protocol.MaxSafeInt {
			return w.fail(n, "the number %s lies beyond ±(2^53−1); write it in quotes", clip(v))
		}
		w.out.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	case special().MatchString(v):
		return w.fail(n, "%s is no number of JSON", v)
	default:
		w.text(v)
	}
	return nil
}

func (w *writer) integer(n *yaml.Node, v string, base int) error {
	i, err := strconv.ParseInt(v, base, 64)
	if err != nil || i > protocol.MaxSafeInt || i < -protocol.MaxSafeInt {
		return w.fail(n, "the number %s lies beyond ±(2^53−1); write it in quotes", clip(v))
	}
	w.out.WriteString(strconv.FormatInt(i, 10))
	return nil
}

func (w *writer) text(s string) {
	b, _ := json.Marshal(strings.ToValidUTF8(s, "�")) // a string always has a JSON form
	w.out.Write(b)
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
