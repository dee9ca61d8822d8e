package lang

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/expr-lang/expr/vm/runtime"
)

// What an expression reads is charged too, since it can read a small thing very often: lists in lists, a long text that is compared
// with each element, a pattern. A step is about what one part of an expression takes, some 10 to 100 ns. Steps are counted before they
// are taken, from the values alone and never from a clock: a replay comes to the same end.

// workMax is how many steps all expressions of one visit or one edge may take: some seconds.
const workMax = 20_000_000

var errWork = errors.New("it takes more than 20 million steps: walk fewer elements, or do it in a command")

// textStep is how many bytes of a text are read in a step.
const textStep = 64

// steps charges n steps.
func (b *budget) steps(n int) error {
	if n > b.work {
		b.work = 0
		return errWork
	}
	b.work -= max(n, 0)
	return nil
}

// times charges n times m steps.
func (b *budget) times(n, m int) error {
	if n > 0 && m > b.work/n {
		return b.steps(workMax + 1)
	}
	return b.steps(n * m)
}

// touched charges the reading of a value, without what is in it.
func (b *budget) touched(v any) error {
	if s, ok := v.(string); ok {
		return b.steps(1 + len(s)/textStep)
	}
	return b.steps(1)
}

// read charges the reading of a value with all that is in it.
func (b *budget) read(v any) error {
	if err := b.touched(v); err != nil {
		return err
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			if err := b.read(r.Index(i).Interface()); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := r.MapRange(); it.Next(); {
			if err := errors.Join(b.read(it.Key().Interface()), b.read(it.Value().Interface())); err != nil {
				return err
			}
		}
	}
	return nil
}

// reads charges the reading of all that a function is given.
func (b *budget) reads(args []any) error {
	for _, a := range args {
		if err := b.read(a); err != nil {
			return err
		}
	}
	return nil
}

// sorted charges the sorting of a list.
func (b *budget) sorted(args []any) error {
	r := reflect.ValueOf(args[0])
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return nil
	}
	deep := 2 * bits.Len(uint(r.Len()))
	for i := range r.Len() {
		n := 1
		if s, ok := r.Index(i).Interface().(string); ok {
			n += len(s) / textStep
		}
		if err := b.times(n, deep); err != nil {
			return err
		}
	}
	return nil
}

// compared charges what it takes to find out whether two values are equal.
func (b *budget) compared(x, y any) error {
	if s, ok := x.(string); ok {
		if t, ok := y.(string); ok && len(s) == len(t) {
			return b.touched(s)
		}
		return b.steps(1)
	}
	v, w := reflect.ValueOf(x), reflect.ValueOf(y)
	list := func(v reflect.Value) bool { return v.Kind() == reflect.Slice || v.Kind() == reflect.Array }
	switch {
	case list(v) && list(w) && v.Len() == w.Len():
		if err := b.steps(1); err != nil {
			return err
		}
		for i := range v.Len() {
			if err := b.compared(v.Index(i).Interface(), w.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	case v.Kind() == reflect.Map && w.Kind() == reflect.Map && v.Len() == w.Len():
		return b.read(x)
	}
	return b.steps(1)
}

// in is whether a list, or an object, has a value.
func (b *budget) in(needle, list any) (any, error) {
	r := reflect.ValueOf(list)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return runtime.In(needle, list), b.touched(needle)
	}
	for i := range r.Len() {
		e := r.Index(i).Interface()
		if err := b.compared(e, needle); err != nil {
			return nil, err
		}
		if runtime.Equal(e, needle) {
			return true, nil
		}
	}
	return false, nil
}

// uniq is the list without what is equal to an element before it. That of expr compares each element with each.
func (b *budget) uniq(args []any) (any, error) {
	r := reflect.ValueOf(args[0])
	out, seen := []any{}, map[uint64][]any{}
	for i := range r.Len() {
		e := r.Index(i).Interface()
		if err := b.read(e); err != nil {
			return nil, err
		}
		h, known := hashOf(e), false
		for _, other := range seen[h] {
			if err := b.compared(e, other); err != nil {
				return nil, err
			}
			if known = runtime.Equal(e, other); known {
				break
			}
		}
		if !known {
			seen[h], out = append(seen[h], e), append(out, e)
		}
	}
	return out, nil
}

// hashOf is the same of values that are equal.
func hashOf(v any) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	mix := func(b []byte) {
		for _, c := range b {
			h = (h ^ uint64(c)) * 1099511628211
		}
	}
	number := func(kind byte, n uint64) {
		mix(binary.LittleEndian.AppendUint64([]byte{kind}, n))
	}
	switch r := reflect.ValueOf(v); {
	case r.Kind() == reflect.String:
		mix([]byte("s" + r.String()))
	case r.Kind() == reflect.Bool:
		mix([]byte{'b'})
	case r.CanInt():
		number('n', math.Float64bits(float64(r.Int()))) // an integer may be equal to a fraction
	case r.CanUint():
		number('n', math.Float64bits(float64(r.Uint())))
	case r.CanFloat():
		number('n', math.Float64bits(r.Float()+0)) // −0 is 0
	case r.Kind() == reflect.Slice || r.Kind() == reflect.Array:
		number('l', uint64(r.Len()))
		for i := range r.Len() {
			number('e', hashOf(r.Index(i).Interface()))
		}
	case r.Kind() == reflect.Map:
		sum := uint64(r.Len())
		for it := r.MapRange(); it.Next(); {
			sum += hashOf(it.Key().Interface())*31 + hashOf(it.Value().Interface())
		}
		number('m', sum)
	}
	return h
}

// flatten is a list without lists in it. That of expr copies each element once for each list around it.
func (b *budget) flatten(args []any) (any, error) {
	out := []any{}
	var walk func(r reflect.Value, depth int) error
	walk = func(r reflect.Value, depth int) error {
		if depth > flattenDepth {
			return errors.New("recursion depth exceeded")
		}
		for i := range r.Len() {
			e := r.Index(i)
			for e.Kind() == reflect.Interface || e.Kind() == reflect.Pointer {
				if e.IsNil() {
					break
				}
				e = e.Elem()
			}
			if e.Kind() == reflect.Slice || e.Kind() == reflect.Array {
				if err := walk(e, depth+1); err != nil {
					return err
				}
				continue
			}
			out = append(out, e.Interface())
		}
		return nil
	}
	err := walk(reflect.ValueOf(args[0]), 0)
	return out, err
}

// flattenDepth is how many lists lie within each other at most, as in expr.
const flattenDepth = 10_000

// A pattern is what matches looks for.
type pattern struct {
	re    *regexp.Regexp
	insts int // a text is read by so many states at once, at most
}

func newPattern(src string) (*pattern, error) {
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

// compileSteps is what it takes to compile a byte of a pattern, which may stand for a thousand states.
const compileSteps = 1000

func (b *budget) matches(text, pat any) (any, error) {
	if runtime.IsNil(text) || runtime.IsNil(pat) {
		return false, nil
	}
	p, ok := pat.(*pattern)
	if !ok {
		src := pat.(string)
		err := b.times(len(src)+1, compileSteps)
		if err == nil {
			p, err = newPattern(src)
		}
		if err != nil {
			return nil, err
		}
	}
	s := text.(string)
	if err := b.times(len(s)/8+1, p.insts); err != nil {
		return nil, err
	}
	return p.re.MatchString(s), nil
}

// operators are those of expr that are charged: what they read may be large.
var operators = map[string]func(b *budget, x, y any) (any, error){
	"==": func(b *budget, x, y any) (any, error) {
		if err := b.compared(x, y); err != nil {
			return nil, err
		}
		return runtime.Equal(x, y), nil
	},
	"!=": func(b *budget, x, y any) (any, error) {
		if err := b.compared(x, y); err != nil {
			return nil, err
		}
		return !runtime.Equal(x, y), nil
	},
	"<":          ordered(runtime.Less),
	">":          ordered(runtime.More),
	"<=":         ordered(runtime.LessOrEqual),
	">=":         ordered(runtime.MoreOrEqual),
	"in":         (*budget).in,
	"matches":    (*budget).matches,
	"contains":   found(strings.Contains),
	"startsWith": found(strings.HasPrefix),
	"endsWith":   found(strings.HasSuffix),
	"..": func(b *budget, x, y any) (any, error) {
		from, to := runtime.ToInt(x), runtime.ToInt(y)
		if size := to - from + 1; size < 0 && to > from || size > memoryBudget {
			return nil, errors.New("memory budget exceeded")
		} else if err := b.steps(size); err != nil {
			return nil, err
		}
		return runtime.MakeRange(from, to), nil
	},
}

func ordered(f func(x, y any) bool) func(b *budget, x, y any) (any, error) {
	return func(b *budget, x, y any) (any, error) {
		s, _ := x.(string)
		t, _ := y.(string)
		if err := b.steps(1 + min(len(s), len(t))/textStep); err != nil {
			return nil, err
		}
		return f(x, y), nil
	}
}

func found(f func(s, part string) bool) func(b *budget, x, y any) (any, error) {
	return func(b *budget, x, y any) (any, error) {
		if runtime.IsNil(x) || runtime.IsNil(y) {
			return false, nil
		}
		s, part := x.(string), y.(string)
		if err := b.steps(1 + (len(s)+len(part))/textStep); err != nil {
			return nil, err
		}
		return f(s, part), nil
	}
}
