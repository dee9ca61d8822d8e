package lang

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"

	"wf/engine/lint"
	"wf/engine/yaml"
)

// roots are the names an expression can begin with.
var roots = []string{"inputs", "output", "outputs", "steps", "item", "index", "edge"}

// template checks the expressions in a scalar.
func (c *checker) template(n *yaml.Node, s *scopeType) {
	if !c.good(n) || n.Kind != yaml.Scalar || !hasExpr(n.Value) {
		return
	}
	pieces, bad, err := lint.Split(n.Value)
	if err != nil {
		at := c.markPos(n, strings.Count(n.Value[:bad], lint.OpenMark))
		c.bad[n] = true
		c.add(Diagnostic{Code: "WF020", Range: Range{at, Pos{Line: at.Line, Col: at.Col + len(lint.OpenMark)}}, Message: err.Error()})
	}
	for _, p := range pieces {
		if p.Expr {
			nth := strings.Count(n.Value[:p.At], lint.OpenMark) - 1
			(&exprCheck{checker: c, n: n, nth: nth, src: p.Text, s: s}).run()
		}
	}
}

// bare checks an expression without braces and tells its type; nil if it was refused.
func (c *checker) bare(n *yaml.Node, s *scopeType) *typ {
	src := unwrap(strings.TrimSpace(n.Value))
	nth := -1
	if hasExpr(n.Value) {
		nth = 0
	}
	return (&exprCheck{checker: c, n: n, nth: nth, src: src, s: s}).run()
}

// exprCheck is the check of one expression.
type exprCheck struct {
	*checker
	n     *yaml.Node
	nth   int // of its ${{, −1 for a bare one
	src   string
	s     *scopeType
	wrong bool

	tree *lint.Tree
	env  types.Map // what the expression refers to, and nothing else
}

func (x *exprCheck) fail(code string, at file.Location, msg, hint string, fix *Fix) {
	x.wrong = true
	x.add(Diagnostic{Code: code, Range: x.exprRange(x.n, x.nth, x.src, at.From, at.To), Message: msg, Hint: hint, Fix: fix})
}

func (x *exprCheck) run() *typ {
	config := conf.CreateNew()
	config.MaxNodes = maxNodes
	for _, name := range disabled {
		config.Disabled[name] = true
		delete(config.Builtins, name)
	}
	tree, err := parser.ParseWithConfig(x.src, config)
	if err != nil {
		x.compileError(err)
		return nil
	}
	x.tree = lint.Walk(tree.Node)
	x.env = types.Map{"inputs": types.Map{}, "outputs": types.Map{}, "steps": types.Map{}, "edge": types.Map{"visit": types.Int}}
	for _, n := range x.tree.Nodes {
		if n, ok := n.(*ast.CallNode); ok {
			x.call(n)
		}
	}
	for _, n := range x.tree.Nodes {
		x.node(n)
	}
	if x.wrong {
		return nil
	}
	prog, err := expr.Compile(x.src, restricted(x.env)...)
	if err != nil {
		x.compileError(err)
		return nil
	}
	x.unset()
	if t := x.chainType(tree.Node); t != nil {
		return t
	}
	return goType(prog.Node().Type())
}

// compileError reports what expr refused.
func (x *exprCheck) compileError(err error) {
	var fe *file.Error
	if !errors.As(err, &fe) {
		x.fail("WF020", file.Location{To: len([]rune(x.src))}, err.Error(), "", nil)
		return
	}
	code, hint := "WF020", ""
	if strings.HasPrefix(fe.Message, "unknown field") || strings.Contains(fe.Message, "has no field") {
		code = "WF022"
	}
	if strings.Contains(fe.Message, "unexpected token Operator(\"=\")") {
		hint = "write == to compare"
	}
	if fe.Message == "literal not terminated" {
		hint = "a quote begins a text and none ends it"
		if strings.Contains(x.src, "\n") && x.n.Style == yaml.DoubleQuoted {
			hint = `in double quotes YAML makes a line end of \n before the expression is read: write \\n, or take single quotes around the whole value`
		}
	}
	if strings.HasPrefix(fe.Message, "builtin ") && strings.Contains(fe.Message, "takes only array (got map") {
		hint = "an object has no order and cannot be gone through: name its fields, or give a list"
	}
	if strings.HasPrefix(fe.Message, "unexpected token") && inClosure(x.src, fe.Location.From) {
		hint = "here { } holds what is done with each item; an object wants parentheses: map(list, ({\"name\": .x}))"
	}
	msg := strings.NewReplacer("<nil>", "null", "map[string]interface {}", "an object", "[]interface {}", "a list", "interface {}", "any value", "takes only array", "takes only a list", "unexpected token EOF", "the expression ends too early").Replace(fe.Message)
	x.fail(code, fe.Location, msg, hint, nil)
}

// inClosure reports whether rune at of an expression is directly inside of a { that is an argument
// of a call, where expr reads a closure and never an object.
func inClosure(src string, at int) bool {
	var open []rune // brackets, a { that follows a comma in a call as }
	var quote, last rune
	for i, c := range []rune(src) {
		if i >= at {
			break
		}
		switch {
		case quote != 0:
			if c == quote && last != '\\' {
				quote = 0
			}
		case strings.ContainsRune("\"'`", c):
			quote = c
		case c == '{' && last == ',' && len(open) > 0 && open[len(open)-1] == '(':
			open = append(open, '}')
		case strings.ContainsRune("([{", c):
			open = append(open, c)
		case strings.ContainsRune(")]}", c) && len(open) > 0:
			open = open[:len(open)-1]
		}
		if !unicode.IsSpace(c) {
			last = c
		}
	}
	return len(open) > 0 && open[len(open)-1] == '}'
}

// call refuses the functions that an expression cannot call.
func (x *exprCheck) call(n *ast.CallNode) {
	x.tree.Inner[n.Callee] = true
	if id, ok := n.Callee.(*ast.IdentifierNode); ok && slices.Contains(disabled, id.Value) {
		x.switchedOff(lint.Step{Name: id.Value, At: id.Location()})
	} else if ok {
		x.suggest("WF020", lint.Step{Name: id.Value, At: id.Location()}, "unknown function "+id.Value, functionNames(), "wf help expressions lists the functions")
	}
}

func (x *exprCheck) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		if !x.tree.Inner[n] {
			x.chain(n)
		}
	case *ast.BinaryNode:
		x.comparison(n)
	}
}

// chain checks a reference step by step.
func (x *exprCheck) chain(n ast.Node) {
	ls := lint.Chain(n)
	if len(ls) == 0 || x.tree.Local[ls[0].Name] {
		return
	}
	root := ls[0]
	if x.s.event {
		x.event(ls)
		return
	}
	if x.s.inputs && root.Name != "inputs" && slices.Contains(append(roots, "secrets"), root.Name) {
		switch {
		case x.s.group && root.Name == "secrets":
			x.fail("WF040", root.At, "a secret in the name of a group", "the name is stored and shown; use an input that is no secret", nil)
			return
		case x.s.group:
			x.fail("WF042", root.At, fmt.Sprintf("%s changes during a run; the name of a group must not", root.Name), "use inputs alone", nil)
			return
		case root.Name == "secrets":
			x.fail("WF040", root.At, "a secret in a prompt", "hand it to a command by env", nil)
			return
		}
		x.fail("WF042", root.At, fmt.Sprintf("%s changes during a run; a role's prompt must not", root.Name), "say it in the prompt of the edge that leads here", nil)
		return
	}
	if x.s.inputs && root.Name == runRoot && len(x.w.Always) > 0 {
		x.fail("WF042", root.At, "how a run ends stands in no role's prompt", "remove it: an agent under always is told how the run ends by the message that it answers", nil)
		return
	}
	switch root.Name {
	case "inputs":
		x.input(ls)
	case "output":
		if x.s.output == nil {
			hint := ""
			if len(x.s.outputs) > 0 {
				hint = "use outputs." + sortedKeys(x.s.outputs)[0]
			}
			x.fail("WF020", root.At, "there is no output here: "+x.s.noOut, hint, nil)
			return
		}
		x.env["output"] = x.s.output.expr()
		x.walk(x.s.output, ls, 1, "output")
	case "outputs":
		if x.s.ended {
			t := objectType(x.s.outputs)
			x.env["outputs"] = t.expr()
			x.walk(t, ls, 1, "outputs")
			return
		}
		x.outputs(ls)
	case "steps":
		x.steps(ls)
	case "item", "index":
		if x.s.item == nil {
			x.fail("WF023", root.At, fmt.Sprintf("%s outside of a fan-out", root.Name), "only a role that a for_each leads to, and the prompt of that edge, know it", nil)
			return
		}
		x.env["item"], x.env["index"] = x.s.item.expr(), types.Int
		if root.Name == "item" {
			x.walk(x.s.item, ls, 1, "item")
		}
	case "edge":
		if len(ls) > 1 && ls[1].Name != "" && ls[1].Name != "visit" {
			x.fail("WF020", ls[1].At, fmt.Sprintf("edge has no field %q", ls[1].Name), `did you mean "visit"?`, &Fix{"visit"})
		}
	case "secrets":
		x.secret(ls)
	case runRoot:
		if _, isInput := x.w.Inputs[runRoot]; !x.s.closing && (isInput || x.roles[runRoot] != nil) {
			x.unknown(root)
			return
		}
		x.verdict(ls)
	default:
		x.unknown(root)
	}
}

// comparison reports a comparison with a value that an enum does not have: it never holds.
func (x *exprCheck) comparison(n *ast.BinaryNode) {
	if n.Operator != "==" && n.Operator != "!=" {
		return
	}
	chain, lit := n.Left, n.Right
	if _, ok := chain.(*ast.StringNode); ok {
		chain, lit = lit, chain
	}
	s, ok := lit.(*ast.StringNode)
	if !ok {
		return
	}
	t := x.chainType(chain)
	if t == nil || t.kind != tString || len(t.enum) == 0 || slices.Contains(t.enum, any(s.Value)) {
		return
	}
	var names []string
	for _, e := range t.enum {
		names = append(names, fmt.Sprint(e))
	}
	at := s.Location()
	x.suggest("WF020", lint.Step{Name: s.Value, At: at}, fmt.Sprintf("%q is none of its values", s.Value), names, "it can be "+strings.Join(names, ", "))
	if d := &x.ds[len(x.ds)-1]; d.Fix != nil {
		d.Fix.Replace = `"` + d.Fix.Replace + `"`
	}
}

// chainType is the type of a chain of literal steps, nil for anything else.
func (x *exprCheck) chainType(n ast.Node) *typ {
	ls := lint.Chain(n)
	if len(ls) == 0 || x.tree.Local[ls[0].Name] {
		return nil
	}
	names := make([]string, len(ls))
	for i, l := range ls {
		if l.Name == "" {
			return nil
		}
		names[i] = l.Name
	}
	return x.s.resolve(names, x.checker)
}

// resolve is the type of a dotted path; nil where it is not known.
func (s *scopeType) resolve(path []string, c *checker) *typ {
	var t *typ
	rest := path[1:]
	switch path[0] {
	case "output":
		t = s.output
	case "item":
		t = s.item
	case "inputs":
		if len(rest) > 0 {
			if in, ok := c.w.Inputs[rest[0]]; ok {
				t, rest = inputType(in), rest[1:]
			}
		}
	case runRoot:
		if s.closing {
			t = s.run()
		}
	case "outputs":
		if len(rest) > 0 {
			t, rest = s.outputs[rest[0]], rest[1:]
		}
	case "steps":
		if len(rest) > 1 && rest[1] == "output" {
			t, rest = c.yields(rest[0]), rest[2:]
		}
	}
	for _, name := range rest {
		if t == nil || t.kind != tObject {
			return nil
		}
		t = t.fields[name]
	}
	return t
}

// goType is the type that expr inferred.
func goType(t reflect.Type) *typ {
	if t == nil {
		return anyT
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolT
	case reflect.Int:
		return intT
	case reflect.Float64:
		return floatT
	case reflect.String:
		return stringT
	case reflect.Slice, reflect.Array:
		return listType(anyT)
	case reflect.Map, reflect.Struct:
		return openT
	}
	return anyT
}

// String names t for messages.
func (t *typ) String() string {
	return [...]string{"anything", "true or false", "an integer", "a number", "a string", "a list", "an object"}[t.kind]
}
