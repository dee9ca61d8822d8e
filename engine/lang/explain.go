package lang

import (
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"wf/engine/lint"
)

// Explanation says why an edge was taken or not.
type Explanation struct {
	Edge  int
	When  string // source of the condition, "" where there is none
	Holds bool
	Err   error  // why the condition could not be decided, or nil
	Terms []Term // parts of the condition, outermost first, then what they refer to
}

// Term is a part of a condition with its value.
type Term struct {
	Source string
	Value  any // JSON value
	Err    error
}

// Explain evaluates the condition of edge and every part of it. It never fails: what cannot
// be evaluated says why.
func (p *Program) Explain(edge int, s Scope) Explanation {
	e := Explanation{Edge: edge, When: p.Workflow.Edges[edge].When}
	e.Holds, e.Err = p.When(edge, s)
	if e.When == "" {
		return e
	}
	tree, err := parser.Parse(e.When)
	if err != nil {
		return e
	}
	scope := p.edgeEnv(edge, &s)
	seen := map[string]bool{e.When: true}
	add := func(src string) {
		if seen[src] {
			return
		}
		seen[src] = true
		t := Term{Source: src}
		c, err := compile(src, nullSafe)
		if err == nil {
			t.Value, err = c.eval(scope)
		}
		t.Err = err
		e.Terms = append(e.Terms, t)
	}
	for _, src := range operands(tree.Node) {
		add(src)
	}
	if refs, err := lint.Refs(e.When); err == nil {
		for _, r := range refs {
			add(r)
		}
	}
	return e
}

// operands are the sides of the outer and, or and not of a condition.
func operands(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "||", "and", "or":
			var out []string
			for _, side := range []ast.Node{n.Left, n.Right} {
				if inner := operands(side); inner != nil {
					out = append(out, inner...)
				} else {
					out = append(out, side.String())
				}
			}
			return out
		}
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			return append([]string{n.Node.String()}, operands(n.Node)...)
		}
	}
	return nil
}
