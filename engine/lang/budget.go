package lang

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// expr counts the elements that an evaluation makes, once they are made, and of text only what
// repeat gives. Here every operation that makes something larger than what it was given is
// charged before it does, in bytes, for all expressions that one visit or one edge evaluates.

// buildMax is how much they may build. A value of that size is copied some six times on its way to a
// record: as JSON, canonical, into chunks, and packed.
const buildMax = 32 << 20

// elementSize is what an element of a list costs.
const elementSize = 16

var errBudget = errors.New("it builds more than 32 MiB: make less of it, or do it in a command")

// budget is what is left of buildMax, and of workMax. It belongs to one goroutine.
type budget struct{ left, work int }

func newBudget() *budget { return &budget{buildMax, workMax} }

// take charges n times size bytes.
func (b *budget) take(n, size int) error {
	if n > 0 && size > 0 && n > b.left/size {
		return errBudget
	}
	b.left -= max(n, 0) * max(size, 0)
	return nil
}

// written charges what a value is when it is written out, however often it holds the same part.
func (b *budget) written(v any) error {
	switch v := v.(type) {
	case nil, bool, int, float64:
		return b.take(1, elementSize)
	case string:
		return b.take(len(v)+elementSize, 1)
	}
	switch r := reflect.ValueOf(v); r.Kind() { // functions of expr return lists and maps of other types too
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			if err := b.written(r.Index(i).Interface()); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := r.MapRange(); it.Next(); {
			if err := errors.Join(b.written(it.Key().Interface()), b.written(it.Value().Interface())); err != nil {
				return err
			}
		}
	}
	return b.take(1, elementSize)
}

// elements charges the elements of lists.
func (b *budget) elements(lists []any) error {
	for _, l := range lists {
		if r := reflect.ValueOf(l); r.Kind() == reflect.Slice || r.Kind() == reflect.Array {
			if err := b.take(r.Len(), 2*elementSize); err != nil { // a list that grows is copied
				return err
			}
		}
	}
	return nil
}

// texts charges factor times the length of every text.
func (b *budget) texts(args []any, factor int) error {
	for _, a := range args {
		if s, ok := a.(string); ok {
			if err := b.take(len(s), factor); err != nil {
				return err
			}
		}
	}
	return nil
}

// texted charges the reading of texts, but of none in a list.
func (b *budget) texted(args []any) error {
	for _, a := range args {
		if err := b.touched(a); err != nil {
			return err
		}
	}
	return nil
}

// charged are the functions of expr that are charged, and how.
var charged = map[string]func(b *budget, args []any) error{
	"repeat": func(b *budget, args []any) error {
		s, ok := args[0].(string)
		if !ok || len(s) == 0 {
			return nil
		}
		return b.take(runtime.ToInt(args[1]), len(s))
	},
	"join": func(b *budget, args []any) error {
		glue := 0
		if len(args) > 1 {
			s, _ := args[1].(string)
			glue = len(s)
		}
		r := reflect.ValueOf(args[0])
		if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
			return nil
		}
		for i := range r.Len() {
			s, _ := r.Index(i).Interface().(string)
			if err := b.take(len(s)+glue+elementSize, 1); err != nil {
				return err
			}
		}
		return nil
	},
	"replace": func(b *budget, args []any) error {
		s, _ := args[0].(string)
		old, _ := args[1].(string)
		with, _ := args[2].(string)
		return errors.Join(b.take(len(s), 1), b.take(strings.Count(s, old), len(with)))
	},
	"split":      func(b *budget, args []any) error { return b.texts(args[:1], elementSize) },
	"splitAfter": func(b *budget, args []any) error { return b.texts(args[:1], elementSize) },
	"upper":      func(b *budget, args []any) error { return b.texts(args, 3) },
	"lower":      func(b *budget, args []any) error { return b.texts(args, 3) },
	"toBase64":   func(b *budget, args []any) error { return b.texts(args, 2) },
	"fromBase64": func(b *budget, args []any) error { return b.texts(args, 2) },
	"fromJSON":   func(b *budget, args []any) error { return b.texts(args, elementSize/2) },
	"toJSON":     func(b *budget, args []any) error { return b.written(args[0]) },
	"string":     func(b *budget, args []any) error { return b.written(args[0]) },
	"flatten":    func(b *budget, args []any) error { return b.written(args[0]) },
	"concat":     (*budget).elements,
	"sort": func(b *budget, args []any) error {
		if err := b.elements(args); err != nil {
			return err
		}
		return b.sorted(args)
	},
	"median": func(b *budget, args []any) error {
		before := b.work
		if err := b.reads(args); err != nil {
			return err
		}
		return b.times(before-b.work, sortSteps)
	},
	"reverse":   (*budget).elements,
	"uniq":      (*budget).elements,
	"fromPairs": func(b *budget, args []any) error { return b.written(args[0]) },

	"len": (*budget).texted, "trim": (*budget).texted, "trimPrefix": (*budget).texted, "trimSuffix": (*budget).texted, "indexOf": (*budget).texted,
	"lastIndexOf": (*budget).texted, "hasPrefix": (*budget).texted, "hasSuffix": (*budget).texted, "int": (*budget).texted, "float": (*budget).texted,
	"duration": (*budget).texted, "get": (*budget).texted, "max": (*budget).reads, "min": (*budget).reads, "mean": (*budget).reads,
}

// replaced are the functions of expr that take longer than what they read and give.
var replaced = map[string]func(b *budget, args []any) (any, error){"uniq": (*budget).uniq, "flatten": (*budget).flatten}

// Names that no expression can write, since they hold a space.
const (
	budgetName   = "the budget"
	addName      = "to add"
	elementsName = "the elements"
	callPrefix   = "to call "
)

// bounded has the operations of an expression charged.
type bounded struct{}

// Visit is called by expr for each node, children first.
func (bounded) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		if n.Operator == "+" {
			ast.Patch(node, charge(addName, n.Left, n.Right))
		} else {
			operates(node, n)
		}
	case *ast.MemberNode:
		n.Property = looked(n.Property)
	case *ast.PairNode:
		n.Key = looked(n.Key)
	case *ast.BuiltinNode:
		switch {
		case n.Name == "groupBy" && len(n.Arguments) > 1:
			n.Arguments[0] = charge(elementsName, n.Arguments[0])
			each(n.Arguments[1], touchName)
		case n.Name == "sortBy" && len(n.Arguments) > 1:
			each(n.Arguments[1], sortName)
		case charged[n.Name] != nil:
			ast.Patch(node, charge(callPrefix+n.Name, n.Arguments...))
		}
	}
}

// each has what a predicate gives charged.
func each(n ast.Node, name string) {
	if p, ok := n.(*ast.PredicateNode); ok {
		p.Node = charge(name, p.Node)
	}
}

// chargedOptions are the functions that bounded calls; made once, they hold no state.
var chargedOptions = sync.OnceValue(func() []expr.Option {
	opts := []expr.Option{
		expr.Patch(loops{}),
		expr.Patch(bounded{}),
		expr.Function(addName, add),
		expr.Function(elementsName, func(args ...any) (any, error) { return args[1], args[0].(*budget).elements(args[1:]) }),
	}
	opts = append(opts, workOptions()...)
	for name, charge := range charged {
		f, own := builtin.Builtins[builtin.Index[name]], replaced[name]
		opts = append(opts, expr.Function(callPrefix+name, func(args ...any) (any, error) {
			if err := charge(args[0].(*budget), args[1:]); err != nil {
				return nil, err
			}
			switch {
			case own != nil:
				return own(args[0].(*budget), args[1:])
			case f.Fast != nil:
				return f.Fast(args[1]), nil
			case f.Safe != nil:
				v, _, err := f.Safe(args[1:]...)
				return v, err
			}
			return f.Func(args[1:]...)
		}))
	}
	return opts
})

// add is +.
func add(args ...any) (any, error) {
	a, isText := args[1].(string)
	if b, ok := args[2].(string); ok && isText {
		if err := args[0].(*budget).take(len(a)+len(b), 1); err != nil {
			return nil, err
		}
		return a + b, nil
	}
	return runtime.Add(args[1], args[2]), nil
}
