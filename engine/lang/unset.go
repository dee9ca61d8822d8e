package lang

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"

	"wf/engine/lint"
)

// An input that is not required and has no default is null where a run is started without it, and
// nothing in a text. The language says so where an expression reads one as if it were there.

// unset notes the inputs that the expression reads without saying what stands for a missing one:
// by ??, by ?., or by comparing it.
func (x *exprCheck) unset() {
	if x.s.ended {
		return // what a case expects is read beside the inputs that it gives
	}
	guarded := map[string]bool{}
	guard := func(n ast.Node) {
		if c, ok := n.(*ast.ChainNode); ok {
			n = c.Node
		}
		if ls := lint.Chain(n); len(ls) > 1 && ls[0].Name == "inputs" {
			guarded[ls[1].Name] = true
		}
	}
	read := map[string]lint.Step{}
	for _, n := range x.tree.Nodes {
		switch n := n.(type) {
		case *ast.BinaryNode:
			switch n.Operator {
			case "??":
				guard(n.Left)
			case "==", "!=", "in":
				guard(n.Left)
				guard(n.Right)
			}
		case *ast.MemberNode:
			if n.Optional {
				guard(n.Node)
			}
		}
		if ls := lint.Chain(n); len(ls) == 2 && ls[0].Name == "inputs" && !x.tree.Local["inputs"] {
			if _, seen := read[ls[1].Name]; !seen {
				read[ls[1].Name] = ls[1]
			}
		}
	}
	for _, name := range sortedKeys(read) {
		in, ok := x.w.Inputs[name]
		if !ok || in.Required || in.Default != "" || guarded[name] || slices.Contains(x.maybe, name) {
			continue
		}
		x.maybe = append(x.maybe, name)
		d := Diagnostic{Code: "WF509", Message: fmt.Sprintf("the input %q may be missing here: it is not required and has no default", name),
			Hint: fmt.Sprintf("declare it with  required: true  or a default, or write what stands for it:  inputs.%s ?? …", name)}
		at := read[name].At
		d.Range = x.exprRange(x.n, x.nth, x.src, at.From, at.To)
		x.add(d)
	}
}

// Unset are the inputs that a run with these inputs was not given though an expression reads them
// as if they were there, by name. A program that was compiled from a stored definition knows none.
func (p *Program) Unset(inputs json.RawMessage) []string {
	var given map[string]json.RawMessage
	if json.Unmarshal(inputs, &given) != nil {
		return nil
	}
	var out []string
	for _, name := range p.maybe {
		if _, ok := given[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}
