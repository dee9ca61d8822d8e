package lang

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"wf/engine/lint"
)

// disabled are the functions of expr that read the clock or the locale, or return
// results in an order that changes from call to call.
var disabled = append([]string{"now", "date", "timezone"}, unordered...)

// unordered are those of them that go through an object.
var unordered = []string{"keys", "values", "toPairs"}

// maxNodes bounds the size of an expression.
const maxNodes = 1000

// memoryBudget bounds the elements that an evaluation may make, as expr counts them.
const memoryBudget = 1_000_000

// mode is how an expression is evaluated.
type mode int

const (
	strict    mode = iota // null.field is an error
	nullSafe              // null.field is null: workflow outputs, which exist however the run ended
	ofEvent               // nullSafe over the event of a webhook, whose shape its sender chooses
	ofClosing             // nullSafe in always roles, which see how the run ends
)

// env is the scope as expr sees it. The fields are untyped on purpose: types are the
// business of the check at Load, and a typed comparison would panic on null.
type env struct {
	Inputs  any     `expr:"inputs"`
	Output  any     `expr:"output"`
	Outputs any     `expr:"outputs"`
	Steps   any     `expr:"steps"`
	Item    any     `expr:"item"`
	Index   any     `expr:"index"`
	Edge    edgeEnv `expr:"edge"`
	Secrets any     `expr:"secrets"`
	Budget  *budget `expr:"the budget"`
	// Event and Run have names that no expression can write: one of a run may have variables called event and run.
	Event any `expr:"the event"`
	Run   any `expr:"the run"`
}

type edgeEnv struct {
	Visit int `expr:"visit"`
}

// code is a compiled expression.
type code struct {
	src  string
	refs []string // what it refers to, as lint.Refs gives it
	prog *vm.Program
}

// restricted are the options of every expression.
func restricted(env any) []expr.Option {
	opts := []expr.Option{expr.Env(env), expr.MaxNodes(maxNodes)}
	for _, name := range disabled {
		opts = append(opts, expr.DisableBuiltin(name))
	}
	return opts
}

// evalOptions are the options of an expression that is evaluated.
func evalOptions(m mode) []expr.Option {
	opts := append(restricted(env{}), chargedOptions()...)
	if m != strict {
		opts = append(opts, expr.Patch(optionalMembers{}))
	}
	if m == ofEvent {
		opts = append(opts, expr.Patch(eventName{}))
	}
	if m == ofClosing {
		opts = append(opts, expr.Patch(runName{}))
	}
	return opts
}

// compile makes the program of an expression, nil for "".
func compile(src string, m mode) (*code, error) {
	if src == "" {
		return nil, nil
	}
	prog, err := expr.Compile(src, evalOptions(m)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, plain(err))
	}
	refs, err := lint.Refs(src)
	if err != nil {
		refs = []string{"steps"} // it is too long to be looked into, and may refer to any of them
	}
	return &code{src: src, refs: refs, prog: prog}, nil
}

// eval runs c. The error names the source text of the expression.
func (c *code) eval(e *env) (any, error) {
	machine := vm.VM{MemoryBudget: memoryBudget}
	v, err := machine.Run(c.prog, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.src, plain(err))
	}
	if v, err = e.Budget.json(v); err != nil {
		return nil, fmt.Errorf("%s: %w", c.src, err)
	}
	return v, nil
}

// plain drops the snippet that expr draws under its messages; we draw our own.
func plain(err error) error {
	var fe *file.Error
	if !errors.As(err, &fe) {
		return err
	}
	msg := fe.Message
	if strings.HasPrefix(msg, "interface conversion: interface {} is ") {
		msg = strings.NewReplacer("interface conversion: interface {} is ", "the value is ", "nil", "null", ", not ", ", want ").Replace(msg)
	}
	return errors.New(strings.ReplaceAll(msg, "<nil>", "null"))
}

// optionalMembers makes every a.b an a?.b.
type optionalMembers struct{}

// Visit is called by expr for each node, children first.
func (optionalMembers) Visit(node *ast.Node) {
	m, ok := (*node).(*ast.MemberNode)
	if !ok || m.Optional || m.Method {
		return
	}
	m.Optional = true
	ast.Patch(node, &ast.ChainNode{Node: m})
}

// eventName makes event the event of a webhook.
type eventName struct{}

// Visit is called by expr for each node.
func (eventName) Visit(node *ast.Node) {
	if id, ok := (*node).(*ast.IdentifierNode); ok && id.Value == eventRoot {
		id.Value = "the event"
	}
}
