package lang_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"wf/engine/lang"
)

// setting loads a workflow that sets x to the value of an expression.
func setting(t testing.TB, expr string) *lang.Program {
	t.Helper()
	p, ds := lang.Load([]byte("wf: 1\nname: t\ninputs: {s: {type: string, required: true}, l: {type: array, required: true}, v: {default: null}}\nlimits: {duration: 1h}\n"+
		"roles:\n  a:\n    set:\n      x: >-\n        ${{ "+expr+" }}\n"), lang.Options{})
	if p == nil {
		t.Fatalf("%s: %v", expr, ds)
	}
	return p
}

func set(p *lang.Program, s string) (string, error) {
	role, _ := p.Workflow.RoleNamed("a")
	r, err := p.Templates(role, lang.Scope{Inputs: map[string]any{"s": s, "l": []any{s, s, s}, "v": nil}})
	return string(r.Values), err
}

// TestNoExpressionBuildsWithoutBound has what would take from one gigabyte to more than there is;
// each is refused before it has taken a part of that.
func TestNoExpressionBuildsWithoutBound(t *testing.T) {
	mega := strings.Repeat("x", 1<<20)
	lets := "let a0 = inputs.s + inputs.s; "
	list := "let a0 = [inputs.s, inputs.s]; "
	for i := 1; i < 40; i++ {
		lets += fmt.Sprintf("let a%d = a%d + a%d; ", i, i-1, i-1)
		list += fmt.Sprintf("let a%d = [a%d, a%d]; ", i, i-1, i-1)
	}
	for name, expr := range map[string]string{
		"repeat":                   `repeat(inputs.s, 1000)`,
		"repeat of a repeat":       `repeat(repeat("x", 100000), 100000)`,
		"repeat beyond an integer": `repeat(repeat("x", 900000), 9000000000000000)`,
		"repeats side by side":     `[` + strings.Repeat(`repeat("x", 30000000), `, 40) + `""]`,
		"repeats in a loop":        `map(1..900, repeat(inputs.s, 100))`,
		"additions by let":         lets + "a39",
		"additions by reduce":      `reduce(1..60, #acc + #acc, inputs.s)`,
		"additions in a loop":      `map(1..10000, inputs.s + inputs.s)`,
		"join":                     `join(map(1..10000, inputs.s), ", ")`,
		"join with a long glue":    `join(map(1..10000, ""), inputs.s)`,
		"replace":                  `replace(inputs.s, "x", inputs.s)`,
		"replace of nothing":       `replace(inputs.s, "", inputs.s)`,
		"split in a loop":          `map(1..1000, split(inputs.s, ""))`,
		"upper in a loop":          `map(1..10000, upper(inputs.s))`,
		"lists in lists as JSON":   list + "toJSON(a39)",
		"lists in lists as text":   list + "string(a39)",
		"lists in lists, flat":     list + "flatten(a39)",
		"lists in lists":           list + "a39",
		"concat by reduce":         `reduce(1..60, concat(#acc, #acc), inputs.l)`,
		"groups in a loop":         `map(1..900, groupBy(split(inputs.s, ""), #))`,
		"base64 in a loop":         `map(1..10000, toBase64(inputs.s))`,
		"ranges in ranges":         `map(1..900, map(1..900, map(1..900, 1)))`,
		"a long range":             `1..900000000000`,
		"template after template":  strings.Repeat(`repeat("x", 30000000) }}${{ `, 40) + `""`,
	} {
		p := setting(t, expr)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := set(p, mega)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: %d bytes", name, len(got))
		} else if !strings.Contains(err.Error(), "32 MiB") && !strings.Contains(err.Error(), "memory budget exceeded") {
			t.Errorf("%s: %.300v", name, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
			t.Errorf("%s took %d MiB before it was refused", name, took)
		}
	}
}

// F-41: nested repeats took a gigabyte. What is too large is refused before it is made, and what may just
// be made takes a few times its size.
func TestNestedRepeatsTakeNoGigabyte(t *testing.T) {
	for expr, most := range map[string]uint64{
		`repeat(repeat("x", 10000), 12000)`:                      4 << 20,
		`repeat(repeat(repeat("x", 1000), 1000), 1000)`:          4 << 20,
		`upper(repeat(repeat("x", 10000), 2000))`:                24 << 20,
		`repeat("x", 900000) + repeat(repeat("x", 10000), 9000)`: 4 << 20,
		`repeat(repeat("x", 10000), 3000)`:                       320 << 20, // 30 MB may be made, in nine copies with the race detector
	} {
		p := setting(t, expr)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := set(p, "")
		runtime.ReadMemStats(&after)
		if made := strings.HasSuffix(expr, "3000)"); made != (err == nil) {
			t.Errorf("%s: %d bytes, %v", expr, len(got), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s took %d bytes, want %d at most", expr, took, most)
		}
	}
}

// TestChargedOperationsGiveWhatTheyGave compares with the results that expr documents.
func TestChargedOperationsGiveWhatTheyGave(t *testing.T) {
	for expr, want := range map[string]string{
		`inputs.s + "b" + 'c'`:                            `"abc"`,
		`1 + 2 * 3`:                                       `7`,
		`1.5 + 1`:                                         `2.5`,
		`repeat("ab", 3)`:                                 `"ababab"`,
		`repeat("ab", 0)`:                                 `""`,
		`join(["a", "b"], "-")`:                           `"a-b"`,
		`join(["a", "b"])`:                                `"ab"`,
		`replace("aXbX", "X", "--")`:                      `"a--b--"`,
		`replace("aXbX", "X", "--", 1)`:                   `"a--bX"`,
		`split("a,b", ",")`:                               `["a","b"]`,
		`split("a,b,c", ",", 2)`:                          `["a","b,c"]`,
		`upper("aß") + lower("B")`:                        `"Aßb"`,
		`toJSON([1, 2])`:                                  `"[\n  1,\n  2\n]"`,
		`string([1]) + string(2) + string(nil)`:           `"[1]2<nil>"`,
		`flatten([1, [2, [3]]])`:                          `[1,2,3]`,
		`concat([1], [2])`:                                `[1,2]`,
		`sort([3, 1])`:                                    `[1,3]`,
		`reverse([3, 1])`:                                 `[1,3]`,
		`uniq([1, 1, 2])`:                                 `[1,2]`,
		`fromBase64(toBase64("a"))`:                       `"a"`,
		`fromJSON('{"a": [1]}').a[0] + 1`:                 `2`,
		`fromPairs([["a", 1]])`:                           `{"a":1}`,
		`groupBy([1, 2, 3], # % 2 == 0 ? "even" : "odd")`: `{"even":[2],"odd":[1,3]}`,
		`inputs.l | map(# + "!") | join(" ")`:             `"a! a! a!"`,
		`(duration("1s") + duration("1s")).Seconds()`:     `2`,
	} {
		got, err := set(setting(t, expr), "a")
		if err != nil || got != `{"x":`+want+`}` {
			t.Errorf("%s: %s, %v, want %s", expr, got, err, want)
		}
	}
}

// TestErrorsOfOperatorsReadAsBefore keeps the words of expr.
func TestErrorsOfOperatorsReadAsBefore(t *testing.T) {
	for expr, want := range map[string]string{
		`inputs.s + inputs.v`: "invalid operation: string + null",
		`upper(inputs.l[7])`:  "index out of range: 7",
	} {
		if _, err := set(setting(t, expr), "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}

// TestALongTextIsHandedOn: what is read and handed on is no amplification.
func TestALongTextIsHandedOn(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<19) // 8 MiB
	got, err := set(setting(t, `"It said: " + inputs.s + "\n"`), long)
	if err != nil || len(got) < len(long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestDeepListsAreConvertedOnce: lists in lists used to take twice as long for each level.
func TestDeepListsAreConvertedOnce(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	got, err := set(setting(t, "fromJSON(inputs.s)"), deep)
	if err != nil || got != `{"x":`+deep+`}` {
		t.Errorf("%.100s, %v", got, err)
	}
}
