package lint

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
)

// given is the one known field: its dotted path and its value. All else is free.
type given struct {
	path  string
	value any // a JSON value
}

// surely reports whether a condition certainly is true, or false.
func (g given) surely(want bool, condition ast.Node) bool {
	v, ok := g.known(condition)
	b, isBool := v.(bool)
	return ok && isBool && b == want
}

// known is the value of an expression where it is certain. Whatever it does not understand is not.
func (g given) known(n ast.Node) (v any, ok bool) {
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
		v, ok := g.known(n.Node)
		switch x := v.(type) {
		case float64:
			return -x, ok && n.Operator == "-"
		case bool:
			return !x, ok && (n.Operator == "!" || n.Operator == "not")
		}
	case *ast.BinaryNode:
		return g.binary(n)
	case *ast.ConditionalNode:
		switch {
		case g.surely(true, n.Cond):
			return g.known(n.Exp1)
		case g.surely(false, n.Cond):
			return g.known(n.Exp2)
		}
		a, okA := g.known(n.Exp1)
		b, okB := g.known(n.Exp2)
		return a, okA && okB && reflect.DeepEqual(a, b)
	default:
		chain := Chain(n)
		return g.value, len(chain) > 0 && chain[len(chain)-1].Name != "" && dotted(chain) == g.path
	}
	return nil, false
}

func (g given) binary(n *ast.BinaryNode) (v any, ok bool) {
	switch n.Operator {
	case "&&", "and":
		if g.surely(false, n.Left) || g.surely(false, n.Right) {
			return false, true
		}
		return true, g.surely(true, n.Left) && g.surely(true, n.Right)
	case "||", "or":
		if g.surely(true, n.Left) || g.surely(true, n.Right) {
			return true, true
		}
		return false, g.surely(false, n.Left) && g.surely(false, n.Right)
	case "in":
		return g.among(n)
	}
	a, ok := g.known(n.Left)
	if n.Operator == "??" {
		return a, ok && a != nil
	}
	b, okRight := g.known(n.Right)
	if !ok || !okRight {
		return nil, false
	}
	switch n.Operator {
	case "==":
		return reflect.DeepEqual(a, b), true
	case "!=":
		return !reflect.DeepEqual(a, b), true
	}
	x, isNumber := a.(float64)
	y, areNumbers := b.(float64)
	ok = isNumber && areNumbers
	switch n.Operator {
	case "<":
		return x < y, ok
	case "<=":
		return x <= y, ok
	case ">":
		return x > y, ok
	case ">=":
		return x >= y, ok
	}
	return nil, false
}

// among decides a value in a list of literals, or in a range of them.
func (g given) among(n *ast.BinaryNode) (found, ok bool) {
	v, ok := g.known(n.Left)
	switch set := n.Right.(type) {
	case *ast.ArrayNode:
		sure := ok
		for _, item := range set.Nodes {
			w, known := g.known(item)
			if ok && known && reflect.DeepEqual(v, w) {
				return true, true
			}
			sure = sure && known
		}
		return false, sure
	case *ast.BinaryNode:
		x, isNumber := v.(float64)
		low, okLow := g.known(set.Left)
		high, okHigh := g.known(set.Right)
		from, isFrom := low.(float64)
		to, isTo := high.(float64)
		return from <= x && x <= to, set.Operator == ".." && ok && isNumber && okLow && okHigh && isFrom && isTo
	}
	return false, false
}
