package lint

import "github.com/expr-lang/expr/ast"

// truth is what is certain about a condition when one field is known and all else is free.
type truth int

const (
	unknown truth = iota
	no
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// given is the one known field: its dotted path and its value.
type given struct {
	path  string
	value any // string, float64, bool or nil
}

// holds says what is certain about a condition. Whatever it does not understand is unknown.
func (g given) holds(n ast.Node) truth {
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			switch g.holds(n.Node) {
			case yes:
				return no
			case no:
				return yes
			}
		}
		return unknown
	case *ast.BinaryNode:
		return g.binary(n)
	case *ast.ConditionalNode:
		switch g.holds(n.Cond) {
		case yes:
			return g.holds(n.Exp1)
		case no:
			return g.holds(n.Exp2)
		}
		if a := g.holds(n.Exp1); a == g.holds(n.Exp2) {
			return a
		}
		return unknown
	}
	if v, ok := g.known(n); ok {
		if b, ok := v.(bool); ok {
			return truthOf(b)
		}
	}
	return unknown
}

func (g given) binary(n *ast.BinaryNode) truth {
	switch n.Operator {
	case "&&", "and":
		a, b := g.holds(n.Left), g.holds(n.Right)
		if a == no || b == no {
			return no
		}
		return min(a, b)
	case "||", "or":
		a, b := g.holds(n.Left), g.holds(n.Right)
		if a == yes || b == yes {
			return yes
		}
		if a == no && b == no {
			return no
		}
		return unknown
	case "in":
		return g.among(n)
	}
	a, ok := g.known(n.Left)
	if !ok {
		return unknown
	}
	b, ok := g.known(n.Right)
	if !ok {
		return unknown
	}
	switch n.Operator {
	case "==":
		return truthOf(a == b)
	case "!=":
		return truthOf(a != b)
	}
	x, ok := a.(float64)
	if !ok {
		return unknown
	}
	y, ok := b.(float64)
	if !ok {
		return unknown
	}
	switch n.Operator {
	case "<":
		return truthOf(x < y)
	case "<=":
		return truthOf(x <= y)
	case ">":
		return truthOf(x > y)
	case ">=":
		return truthOf(x >= y)
	}
	return unknown
}

// among decides a value in a list of literals, or in a range of them.
func (g given) among(n *ast.BinaryNode) truth {
	v, ok := g.known(n.Left)
	if !ok {
		return unknown
	}
	switch set := n.Right.(type) {
	case *ast.ArrayNode:
		sure := no
		for _, item := range set.Nodes {
			w, ok := g.known(item)
			if ok && v == w {
				return yes
			}
			if !ok {
				sure = unknown
			}
		}
		return sure
	case *ast.BinaryNode:
		if set.Operator != ".." {
			return unknown
		}
		x, isNumber := v.(float64)
		low, okLow := g.known(set.Left)
		high, okHigh := g.known(set.Right)
		from, isFrom := low.(float64)
		to, isTo := high.(float64)
		if isNumber && okLow && okHigh && isFrom && isTo {
			return truthOf(from <= x && x <= to)
		}
	}
	return unknown
}

// known is the value of a literal, or of the field.
func (g given) known(n ast.Node) (any, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.BoolNode:
		return n.Value, true
	case *ast.NilNode:
		return nil, true
	case *ast.UnaryNode:
		if n.Operator == "-" {
			v, ok := g.known(n.Node)
			x, isNumber := v.(float64)
			return -x, ok && isNumber
		}
	case *ast.BinaryNode:
		if n.Operator == "??" {
			if v, ok := g.known(n.Left); ok && v != nil {
				return v, true
			}
		}
	}
	if chain := Chain(n); len(chain) > 0 && chain[len(chain)-1].Name != "" && dotted(chain) == g.path {
		return g.value, true
	}
	return nil, false
}
