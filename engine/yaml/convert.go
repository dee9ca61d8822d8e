package yaml

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// converter turns the library's nodes into ours, each once, and measures them as if every
// alias were written out.
type converter struct {
	lines  []string
	row    int    // of the line that was looked at last, from 1
	line   []rune // it
	limits Limits
	done   map[*yaml.Node]*Node // nil while a node is under way
	errs   []*Error
	fatal  bool
}

func (c *converter) fail(n *yaml.Node, msg, hint string) {
	c.errs = append(c.errs, &Error{Pos: Pos{n.Line, n.Column}, End: Pos{n.Line, n.Column + 1}, Message: msg, Hint: hint})
	c.fatal = true
}

func (c *converter) node(y *yaml.Node) *Node {
	if y.Kind == yaml.AliasNode {
		return c.alias(y)
	}
	if n, seen := c.done[y]; seen {
		return n
	}
	c.done[y] = nil
	n := &Node{Pos: Pos{y.Line, y.Column}, size: 1, depth: 1}
	switch y.Kind {
	case yaml.MappingNode:
		n.Kind = Mapping
		c.mapping(n, y)
	case yaml.SequenceNode:
		n.Kind = Sequence
		for _, e := range y.Content {
			if item := c.value(e); item != nil {
				n.Items = append(n.Items, item)
				c.grow(n, item, e)
			}
		}
	default:
		n.Kind, n.Value = Scalar, y.Value
		n.Type, n.Style = scalarType(y), scalarStyle(y)
	}
	n.End = c.end(n)
	c.tag(n, y)
	c.done[y] = n
	return n
}

// value is a node that is no key. As a key a number is the text that was written; elsewhere it must be clear which one is meant.
func (c *converter) value(y *yaml.Node) *Node {
	n := c.node(y)
	if n != nil && y.Kind == yaml.ScalarNode && !tagged(y) {
		c.number(n)
	}
	return n
}

func (c *converter) alias(y *yaml.Node) *Node {
	n, seen := c.done[y.Alias]
	if !seen {
		return c.node(y.Alias)
	}
	if n == nil {
		c.fail(y, fmt.Sprintf("alias *%s stands inside the node it names", y.Value), "write the value out")
	}
	return n
}

// grow counts child into n and stops at the limits.
func (c *converter) grow(n, child *Node, y *yaml.Node) {
	n.size = min(n.size+child.size, 1<<40)
	n.depth = max(n.depth, child.depth+1)
	switch {
	case c.fatal:
	case n.size > c.limits.Nodes:
		c.fail(y, fmt.Sprintf("the document has more than %d nodes once its aliases are written out", c.limits.Nodes), "an alias of aliases grows without measure; write values out")
	case n.depth > c.limits.Depth:
		c.fail(y, fmt.Sprintf("nested more than %d deep", c.limits.Depth), "flatten the structure")
	}
}

func (c *converter) mapping(n *Node, y *yaml.Node) {
	first := map[string]Pos{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.ShortTag() == "!!merge" {
			merges = append(merges, v)
			continue
		}
		key := c.node(k)
		if key == nil {
			continue
		}
		if key.Kind != Scalar || key.Type == Null {
			c.fail(k, "a key must be text", "")
			continue
		}
		value := c.value(v)
		if value == nil {
			continue
		}
		if was, twice := first[key.Value]; twice {
			c.errs = append(c.errs, &Error{Pos: key.Pos, End: key.End, Message: fmt.Sprintf("key %q is given twice", key.Value),
				Hint: fmt.Sprintf("the first is at line %d; remove one", was.Line)})
			continue
		}
		first[key.Value] = key.Pos
		n.Pairs = append(n.Pairs, Pair{key, value})
		c.grow(n, key, k)
		c.grow(n, value, v)
	}
	for _, m := range merges {
		c.merge(n, m, first)
	}
}

// merge adds what a << names and n lacks.
func (c *converter) merge(n *Node, y *yaml.Node, have map[string]Pos) {
	v := c.node(y)
	if v == nil {
		return
	}
	sources := []*Node{v}
	if v.Kind == Sequence {
		sources = v.Items
	}
	for _, s := range sources {
		if s.Kind != Mapping {
			c.fail(y, "<< needs a mapping, or a list of mappings", "")
			return
		}
		for _, p := range s.Pairs {
			if _, ok := have[p.Key.Value]; ok {
				continue
			}
			have[p.Key.Value] = p.Key.Pos
			n.Pairs = append(n.Pairs, p)
			c.grow(n, p.Key, y)
			c.grow(n, p.Value, y)
		}
	}
}

// refuse adds an error at n that leaves the rest readable.
func (c *converter) refuse(n *Node, msg, hint string) {
	c.errs = append(c.errs, &Error{Pos: n.Pos, End: n.End, Message: msg, Hint: hint, Node: n})
}

func scalarStyle(y *yaml.Node) Style {
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		return DoubleQuoted
	case y.Style&yaml.SingleQuotedStyle != 0:
		return SingleQuoted
	case y.Style&yaml.LiteralStyle != 0:
		return Literal
	case y.Style&yaml.FoldedStyle != 0:
		return Folded
	}
	return Plain
}

// end finds where n stops on its first line.
func (c *converter) end(n *Node) Pos {
	one := Pos{n.Pos.Line, n.Pos.Col + 1}
	if n.Pos.Line < 1 || n.Pos.Line > len(c.lines) {
		return one
	}
	if c.row != n.Pos.Line {
		c.row, c.line = n.Pos.Line, []rune(c.lines[n.Pos.Line-1])
	}
	rest := c.line
	if n.Pos.Col < 1 || n.Pos.Col > len(rest) {
		return one
	}
	rest = rest[n.Pos.Col-1:]
	width := 1
	switch {
	case rest[0] == '!':
		if width = slices.IndexFunc(rest, func(r rune) bool { return strings.ContainsRune(" \t,]}", r) }); width < 0 {
			width = len(rest)
		}
	case n.Kind == Scalar && n.Style == Plain:
		if long := utf8.RuneCountInString(n.Value); string(rest[:min(long, len(rest))]) == n.Value {
			width = long
		} else {
			width = textWidth(rest)
		}
	case n.Kind == Scalar && (n.Style == SingleQuoted || n.Style == DoubleQuoted):
		width = quotedWidth(rest)
	case n.Kind != Scalar && len(rest) > 0 && (rest[0] == '{' || rest[0] == '['):
		width = flowWidth(rest)
	case n.Kind != Scalar:
		width = textWidth(rest)
	}
	return Pos{n.Pos.Line, n.Pos.Col + max(width, 1)}
}

// textWidth is the length of a line without a trailing comment.
func textWidth(line []rune) int {
	s := string(line)
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	return utf8.RuneCountInString(strings.TrimRight(s, " \t"))
}

// quotedWidth is the length of the quoted scalar at the start of line, or of the line where
// it goes on below.
func quotedWidth(line []rune) int {
	q := line[0]
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && q == '"':
			i++
		case line[i] == q && q == '\'' && i+1 < len(line) && line[i+1] == q:
			i++
		case line[i] == q:
			return i + 1
		}
	}
	return len(line)
}

// flowWidth is the length of the flow collection at the start of line, or of the text of the
// line where it goes on below.
func flowWidth(line []rune) int {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"', '\'':
			if i > 0 && strings.ContainsRune(" ,:[{", line[i-1]) {
				i += quotedWidth(line[i:]) - 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return textWidth(line)
}
