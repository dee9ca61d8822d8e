package lang

import (
	"reflect"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// How the parts of an expression come to charge what they read: each is made a call of a function of the budget.

// Names that no expression can write.
const (
	operatorPrefix = "to do "
	loopName       = "to walk"
	touchName      = "to touch"
	sortName       = "to sort by"
)

// sortSteps is how often an element is compared while a list of at most a million is sorted.
const sortSteps = 40

// workOptions are the functions that charge steps.
func workOptions() []expr.Option {
	opts := []expr.Option{
		expr.Function(loopName, func(args ...any) (any, error) { // the budget, what one round takes, the list
			if r := reflect.ValueOf(args[2]); r.Kind() == reflect.Slice || r.Kind() == reflect.Array {
				return args[2], args[0].(*budget).times(r.Len(), args[1].(int))
			}
			return args[2], nil
		}),
		expr.Function(touchName, func(args ...any) (any, error) { return args[1], args[0].(*budget).touched(args[1]) }),
		expr.Function(sortName, func(args ...any) (any, error) {
			s, _ := args[1].(string)
			return args[1], args[0].(*budget).times(1+len(s)/textStep, sortSteps)
		}),
	}
	for name, do := range operators {
		opts = append(opts, expr.Function(operatorPrefix+name, func(args ...any) (any, error) { return do(args[0].(*budget), args[1], args[2]) }))
	}
	return opts
}

// short reports whether a part of an expression is written in it and is no long text: what is compared with it is read as far as that.
func short(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return true
	case *ast.StringNode:
		return len(n.Value) <= textStep
	case *ast.UnaryNode:
		return short(n.Node)
	}
	return false
}

// few reports whether a part of an expression is a list of such parts.
func few(n ast.Node) bool {
	list, ok := n.(*ast.ArrayNode)
	if !ok {
		return false
	}
	for _, e := range list.Nodes {
		if !short(e) {
			return false
		}
	}
	return true
}

// operates has an operator charged, unless it reads little whatever it is given.
func operates(node *ast.Node, n *ast.BinaryNode) {
	if operators[n.Operator] == nil || n.Operator == "in" && few(n.Right) {
		return
	}
	switch n.Operator {
	case "==", "!=", "<", ">", "<=", ">=":
		if short(n.Left) || short(n.Right) {
			return
		}
	case "matches":
		if s, ok := n.Right.(*ast.StringNode); ok {
			p, err := newPattern(s.Value)
			if err != nil {
				return // it is told where the expression is checked
			}
			n.Right = &ast.ConstantNode{Value: p}
		}
	}
	ast.Patch(node, charge(operatorPrefix+n.Operator, n.Left, n.Right))
}

// charge calls a function of the budget.
func charge(name string, args ...ast.Node) *ast.CallNode {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: append([]ast.Node{&ast.IdentifierNode{Value: budgetName}}, args...)}
}

// looked has a key charged that is not written in the expression: it is read as a whole.
func looked(n ast.Node) ast.Node {
	if short(n) {
		return n
	}
	if s, ok := n.(*ast.StringNode); ok {
		return s
	}
	return charge(touchName, n)
}

// loops has what walks a list charged for all of it, before it does.
type loops struct{}

// Visit is called by expr for each node, children first.
func (loops) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BuiltinNode)
	if !ok || len(n.Arguments) == 0 || !walks[n.Name] {
		return
	}
	round := counter(1)
	for _, a := range n.Arguments[1:] {
		if _, ok := a.(*ast.PredicateNode); ok {
			ast.Walk(&a, &round)
		}
	}
	n.Arguments[0] = charge(loopName, &ast.IntegerNode{Value: int(round)}, n.Arguments[0])
}

// walks are the functions of expr that walk a list by themselves.
var walks = map[string]bool{"all": true, "none": true, "any": true, "one": true, "filter": true, "map": true, "find": true, "findIndex": true, "findLast": true,
	"findLastIndex": true, "count": true, "sum": true, "groupBy": true, "sortBy": true, "reduce": true}

// counter counts the parts of an expression.
type counter int

func (c *counter) Visit(*ast.Node) { *c++ }
