package yaml

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind is the shape of a Node.
type Kind int

// The kinds of nodes; an alias has the kind of what it names.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// Type is what a scalar stands for after tag resolution.
type Type int

// The types of scalars. Dates and everything else unknown to JSON are strings.
const (
	Null Type = iota
	Bool
	Int
	Float
	String
)

// Style is how a scalar was written.
type Style int

// The styles of scalars.
const (
	Plain Style = iota
	SingleQuoted
	DoubleQuoted
	Literal // |
	Folded  // >
)

// Pos is a place in the source: line and column from 1, columns in runes.
type Pos struct {
	Line int `json:"line"`
	Col  int `json:"col"`
}

// Node is a value with the place it was written at. Aliases are resolved: an aliased Node is
// shared, so nodes must not be changed.
type Node struct {
	Kind  Kind
	Type  Type   // of a scalar
	Style Style  // of a scalar
	Value string // of a scalar, unquoted
	Pos   Pos
	End   Pos     // exclusive; for a collection or a block scalar the end of its first line
	Pairs []Pair  // of a mapping, in written order, keys unique
	Items []*Node // of a sequence

	size  int // nodes below and with this one, aliases expanded
	depth int
}

// Pair is a key of a mapping with its value. Keys are text whatever their type.
type Pair struct {
	Key   *Node
	Value *Node
}

// Get finds the value of a key; nil where n is no mapping or lacks it.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Pairs {
		if n.Pairs[i].Key.Value == key {
			return n.Pairs[i].Value
		}
	}
	return nil
}

// IsNull reports whether n says nothing: it is absent, empty or null.
func (n *Node) IsNull() bool { return n == nil || n.Kind == Scalar && n.Type == Null }

// Describe names the kind of n for messages, for example "a list".
func (n *Node) Describe() string {
	switch {
	case n.IsNull():
		return "nothing"
	case n.Kind == Mapping:
		return "a mapping"
	case n.Kind == Sequence:
		return "a list"
	}
	return [...]string{"nothing", "a boolean", "an integer", "a number", "a string"}[n.Type]
}

// JSON is the value as JSON knows it: nil, bool, int, float64, string, []any or
// map[string]any. Integers beyond ±(2^53−1), NaN and infinities are errors that name the
// place.
func (n *Node) JSON() (any, error) {
	if n == nil {
		return nil, nil
	}
	switch n.Kind {
	case Mapping:
		m := make(map[string]any, len(n.Pairs))
		for _, p := range n.Pairs {
			v, err := p.Value.JSON()
			if err != nil {
				return nil, err
			}
			m[p.Key.Value] = v
		}
		return m, nil
	case Sequence:
		s := make([]any, len(n.Items))
		for i, it := range n.Items {
			v, err := it.JSON()
			if err != nil {
				return nil, err
			}
			s[i] = v
		}
		return s, nil
	}
	switch n.Type {
	case Null:
		return nil, nil
	case Bool:
		return strings.EqualFold(n.Value, "true"), nil
	case Int:
		return n.Int()
	case Float:
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, n.errorf("%s is no JSON number", n.Value)
		}
		return f, nil
	}
	return n.Value, nil
}

// Int is the value of an integer within ±(2^53−1).
func (n *Node) Int() (int, error) {
	i, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil || i > 1<<53-1 || i < -(1<<53-1) {
		return 0, n.errorf("%s is not an integer within ±(2^53−1)", n.Value)
	}
	return int(i), nil
}

func (n *Node) errorf(format string, args ...any) *Error {
	return &Error{Pos: n.Pos, End: n.End, Message: fmt.Sprintf(format, args...)}
}
