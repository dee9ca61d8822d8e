package lang

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser/operator"
)

// What an expression may be given: texts and lists as large as a step may hand on.
func hostileInputs() map[string]any {
	text := strings.Repeat("a", 4<<20)
	var numbers, texts, lists, objects []any
	for i := range 40_000 {
		numbers, texts = append(numbers, i), append(texts, fmt.Sprintf("%06d", i))
		lists, objects = append(lists, []any{i}), append(objects, map[string]any{"id": i})
	}
	deep := []any{}
	for range 10_000 {
		deep = append(deep, 1)
	}
	for range 5_000 {
		deep = []any{deep}
	}
	return map[string]any{"s": text, "t": strings.Repeat("a", 4<<20), "n": numbers, "x": texts, "l": lists, "o": objects, "deep": deep, "one": map[string]any{"a": 1}}
}

// evaluated evaluates an expression, and tells what it took.
func evaluated(t testing.TB, src string, inputs map[string]any) (v any, steps int, took time.Duration, err error) {
	t.Helper()
	c, err := compile(src, strict)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	e := &env{Inputs: inputs, Budget: newBudget()}
	began := time.Now()
	v, err = c.eval(e)
	return v, workMax - e.Budget.work, time.Since(began), err
}

// twice are lets of lists that hold the one before twice, n of them: a2 has four ends, a39 more than can be walked.
func twice(n int) string {
	s := "let a0 = [1, 2]; "
	for i := 1; i <= n; i++ {
		s += fmt.Sprintf("let a%d = [a%d, a%d]; ", i, i-1, i-1)
	}
	return s
}

// workBound is within what time any expression ends. On a quiet machine it is two seconds.
var workBound = 20 * time.Second

// F-414: no expression works without a bound, whatever it is given: it is refused with words, before it has taken long.
func TestF414NoExpressionWorksWithoutBound(t *testing.T) {
	in := hostileInputs()
	for _, src := range []string{
		`map(1..5000, map(1..5000, 1))`, `map(inputs.n, filter(inputs.n, # > 5))`, `count(1..1000000, any(1..1000000, # < 0))`, `all(inputs.n, none(inputs.n, # == -1))`,
		`filter(inputs.n, # not in inputs.l)`, `filter(1..1000000, -1 in 1..1000000)`, `filter(inputs.x, # + "x" in inputs.x)`, `find(inputs.n, -1 in inputs.n)`,
		`sum(1..1000000, reduce(1..1000000, #acc + #, 0))`, `sum(map(inputs.n, sum(inputs.n)))`, `sortBy(inputs.n, sum(inputs.n))`, `groupBy(inputs.n, sum(inputs.n))`,
		`filter(1..1000000, inputs.s == inputs.t)`, `filter(1..1000000, inputs.s != inputs.t)`, `filter(1..1000000, inputs.s < inputs.t)`, `filter(1..1000000, inputs.s >= inputs.t)`,
		`filter(1..1000000, inputs.s contains "ab")`, `filter(1..1000000, inputs.s startsWith inputs.t)`, `filter(1..1000000, inputs.s endsWith inputs.t)`,
		`inputs.s matches "(?:a?){1000}b"`, `inputs.s matches ("(?:a?)" + "{1000}b")`, `filter(1..1000000, "a" matches ("(?:a?)" + "{1000}b"))`, `filter(1..1000000, inputs.s matches "b")`,
		`filter(1..1000000, len(inputs.s) == 0)`, `map(1..1000000, indexOf(inputs.s, "b"))`, `map(1..1000000, lastIndexOf(inputs.s, "b"))`, `map(1..1000000, trim(inputs.s, "a"))`,
		`filter(1..1000000, hasPrefix(inputs.s, inputs.t))`, `filter(1..1000000, hasSuffix(inputs.s, inputs.t))`,
		`map(1..1000000, trimPrefix(inputs.s, inputs.t))`, `map(1..1000000, trimSuffix(inputs.s, inputs.t))`,
		`groupBy(1..1000000, inputs.s)`, `sortBy(1..1000000, inputs.s)`, `sortBy(map(1..20000, [inputs.s, inputs.t][# % 2]), #)`, `sort(map(1..100000, inputs.s))`,
		`map(1..1000000, inputs.one[inputs.s])`, `map(1..1000000, get(inputs.one, inputs.s))`, `map(1..1000000, inputs.s in inputs.one)`, `map(1..1000000, [{(inputs.s): 1}])`,
		`uniq(map(1..100000, inputs.s))`, `map(1..1000000, max(inputs.n))`, `map(1..1000000, min(inputs.n))`, `map(1..1000000, mean(inputs.n))`, `map(1..1000000, median(inputs.n))`,
		`map(1..1000000, inputs.l == inputs.l)`, `map(1..1000000, inputs.o == inputs.o)`, `map(1..1000000, inputs.o in [inputs.o])`,
		twice(39) + `a39 == a39`, twice(39) + `a39 in [a39]`, twice(39) + `max(a39)`, twice(39) + `mean(a39)`, twice(39) + `median(a39)`, twice(39) + `uniq([a39, a39])`, twice(39) + `flatten(a39)`,
		`map(1..1000000, uniq(inputs.n))`, `map(1..1000000, 1..1000000)`, `map(1..1000000, first(1..1000000))`, `map(1..1000000, sort(inputs.n))`, `map(1..1000000, flatten(inputs.l))`,
	} {
		_, steps, took, err := evaluated(t, src, in)
		if len(src) > 100 {
			src = "…" + src[len(src)-30:]
		}
		t.Logf("%8s %10d %s", took.Round(time.Millisecond), steps, src)
		if err == nil || !strings.Contains(err.Error(), "20 million steps") && !strings.Contains(err.Error(), "32 MiB") && !strings.Contains(err.Error(), "memory budget") {
			t.Errorf("%s: %.200v", src, err)
		}
		if took > workBound {
			t.Errorf("%s took %s", src, took)
		}
	}
}

// What was quadratic in its library takes twice as many steps for twice as much, and ends.
func TestF414TwiceAsMuchTakesTwiceAsLong(t *testing.T) {
	in := hostileInputs()
	half := map[string]any{}
	for name, v := range in {
		if list, ok := v.([]any); ok && name != "deep" {
			v = list[:len(list)/2]
		}
		half[name] = v
	}
	for src, most := range map[string]float64{
		`uniq(inputs.n)`: 2, `uniq(inputs.x)`: 2, `uniq(inputs.l)`: 2, `uniq(inputs.o)`: 2, `uniq(map(inputs.n, # + 0.5))`: 2, `uniq(map(inputs.n, 1))`: 2,
		`flatten(inputs.l)`: 2, `map(inputs.n, # + 1)`: 2, `filter(inputs.o, .id > 5)`: 2, `groupBy(inputs.n, string(# % 10))`: 2, `max(inputs.n)`: 2, `inputs.n == inputs.n`: 2,
		`sort(inputs.n)`: 2.2, `sortBy(inputs.n, -#)`: 2.2, `median(inputs.n)`: 2.2, `-1 in inputs.n`: 2, `reduce(inputs.n, #acc + #, 0)`: 2, `join(inputs.x)`: 2,
	} {
		_, few, _, err := evaluated(t, src, half)
		if err != nil {
			t.Fatal(src, err)
		}
		_, many, took, err := evaluated(t, src, in)
		if err != nil {
			t.Fatal(src, err)
		}
		if few > 0 && float64(many-5) > most*float64(few) {
			t.Errorf("%s: %d steps, then %d", src, few, many)
		}
		if took > workBound/4 {
			t.Errorf("%s took %s", src, took)
		}
	}
	for src, want := range map[string]int{`uniq(1..40000)`: 40_000, `uniq(map(1..40000, # % 7))`: 7, `flatten(inputs.deep)`: 10_000} {
		v, _, took, err := evaluated(t, src, in)
		if list, _ := v.([]any); err != nil || len(list) != want || took > workBound/4 {
			t.Errorf("%s: %d elements, %s, %.100v", src, len(list), took, err)
		}
	}
}

// Just below the bound an expression ends well, at it too, and beyond it does not; and each time it is the same.
func TestF414TheBoundOfSteps(t *testing.T) {
	for range 3 {
		for n, ok := range map[int]bool{workMax / 2000: true, workMax/2000 + 1: false} { // a round of the inner list is one step
			b := newBudget()
			if err := b.times(n, 2000); (err == nil) != ok {
				t.Errorf("%d rounds: %v", n, err)
			}
		}
		b := newBudget()
		if b.steps(workMax-1) != nil || b.steps(1) != nil || b.steps(1) == nil {
			t.Error("the bound is another")
		}
	}
	src := `count(inputs.n, any(1..%d, # < 0))`
	in := hostileInputs()
	last := 0
	for low, high := 1, 400; low <= high; {
		mid := (low + high) / 2
		if _, _, _, err := evaluated(t, fmt.Sprintf(src, mid), in); err == nil {
			last, low = mid, mid+1
		} else {
			high = mid - 1
		}
	}
	for range 3 {
		if _, _, _, err := evaluated(t, fmt.Sprintf(src, last), in); err != nil {
			t.Error(err)
		}
		if _, _, _, err := evaluated(t, fmt.Sprintf(src, last+1), in); err == nil || !strings.Contains(err.Error(), "walk fewer elements, or do it in a command") {
			t.Error(err)
		}
	}
}

// constant are the functions and operators of expr that take as long whatever they are given.
var constant = strings.Fields("type abs ceil floor round first last take bitnot bitand bitor bitxor bitnand bitshl bitshr bitushr && || and or not ! + - * / % ** ^ ?? | not")

// Each function and operator of expr is charged, takes a constant time, or is not there: one of a later version too.
func TestF414EveryFunctionAndOperatorIsCharged(t *testing.T) {
	known := map[string]bool{}
	for _, names := range [][]string{constant, disabled} {
		for _, n := range names {
			known[n] = true
		}
	}
	for _, f := range builtin.Builtins {
		if !known[f.Name] && !walks[f.Name] && charged[f.Name] == nil {
			t.Errorf("%s is not charged", f.Name)
		}
	}
	for name := range operator.Binary {
		if !known[name] && operators[name] == nil {
			t.Errorf("the operator %s is not charged", name)
		}
	}
}

// What is charged gives what expr gives.
func TestF414ChargedWorkGivesWhatItGave(t *testing.T) {
	in := map[string]any{"s": "abc", "n": nil, "l": []any{1, 1.0, "1", nil, nil, true, []any{1}, []any{1.0}, map[string]any{"a": 1}, map[string]any{"a": 1.0}, map[string]any{"a": 1}, math.Copysign(0, -1), 0}}
	for src, want := range map[string]string{
		`len(uniq(inputs.l))`: "8", `uniq(["b", "a", "b"])`: "[b a]", `uniq(split("a,a,b", ","))`: "[a b]", `uniq(1..3)`: "[1 2 3]", `uniq([])`: "[]",
		`flatten([1, [2, [nil, []]], "x"])`: "[1 2 <nil> x]", `1 in [1.0]`: "true", `"a" in split("a,b", ",")`: "true", `"a" in {"a": 1}`: "true", `inputs.n in inputs.l`: "true",
		`1 in inputs.n`: "false", `inputs.l == inputs.l`: "true", `inputs.l != inputs.l`: "false", `[1] == [1.0]`: "true", `inputs.s == inputs.n`: "false", `inputs.n == inputs.n`: "true",
		`inputs.s < inputs.s`: "false", `inputs.s <= inputs.s`: "true", `inputs.s contains inputs.n`: "false", `inputs.s startsWith "ab"`: "true", `inputs.s endsWith inputs.s`: "true",
		`inputs.s matches "^a.c$"`: "true", `inputs.s matches inputs.s`: "true", `inputs.n matches "x"`: "false", `not (inputs.s matches "b")`: "false", `inputs.s not in ["x"]`: "true",
		`3..1`: "[]", `1..3`: "[1 2 3]", `sum(1..4)`: "10", `sum(1..4, # * 2)`: "20", `sortBy(["b", "a"], #)`: "[a b]", `sortBy([1, 2], #, "desc")`: "[2 1]", `sort(["b", "a"], "desc")`: "[b a]",
		`groupBy([1, 2, 3], string(# % 2))`: "map[0:[2] 1:[1 3]]", `inputs["s"]`: "abc", `inputs[inputs.s]`: "<nil>", `get(inputs, "s")`: "abc", `{(inputs.s): 1}`: "map[abc:1]", `median([3, 1, 2])`: "2",
		`max([1, [3]], 2)`: "3", `mean([1, 3])`: "2", `len("añ")`: "2", `trim("  a ")`: "a", `trimPrefix("ab", "a")`: "b", `indexOf("abc", "c")`: "2", `int("5") + float("1.5")`: "6.5",
		`reduce([1, 2], #acc + #, 10)`: "13", `findIndex([1, 2], # == 2)`: "1", `map(filter(1..4, # > 2), # * 2)`: "[6 8]", `all([], false)`: "true", `count([true, false])`: "1", `inputs.s[1:]`: "bc",
	} {
		v, _, _, err := evaluated(t, src, in)
		if got := fmt.Sprint(v); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", src, got, err, want)
		}
	}
}

// uniq and flatten, which are written anew, give for any lists what those of expr give.
func TestF414UniqAndFlattenAreThoseOfExpr(t *testing.T) {
	r := rand.New(rand.NewPCG(414, 1))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(12); {
		case n < 3:
			return r.IntN(4)
		case n < 5:
			return float64(r.IntN(6)) / 2
		case n < 6:
			return []any{nil, true, false, math.NaN(), math.Copysign(0, -1), 1 << 53, 1<<53 + 1, float64(1 << 53), time.Second, int(time.Second)}[r.IntN(10)]
		case n < 8 || depth > 3:
			return []string{"", "a", "b", "1"}[r.IntN(4)]
		case n < 9:
			return map[string]any{"a": value(depth + 1)}
		case n < 10:
			return []string{"a", "b"}[:r.IntN(3)]
		}
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = value(depth + 1)
		}
		return list
	}
	of := func(name string) *builtin.Function { return builtin.Builtins[builtin.Index[name]] }
	for range 20_000 {
		list := make([]any, r.IntN(8))
		for i := range list {
			list[i] = value(0)
		}
		want, err := of("uniq").Func(list)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newBudget().uniq([]any{list}); err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("uniq(%#v): %#v, %v, want %#v", list, got, err, want)
		}
		if want, _, err = of("flatten").Safe(list); err != nil {
			t.Fatal(err)
		}
		if got, err := newBudget().flatten([]any{list}); err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("flatten(%#v): %#v, %v, want %#v", list, got, err, want)
		}
	}
}
