package lang

import (
	"fmt"
	"slices"
	"strings"
)

// function is what the page says of a function that expressions can call.
type function struct {
	call  string // with the names of its arguments; those in [ ] may be left out
	does  string
	shown string // an example
	gives string // what the example gives, as JSON
}

func (f function) name() string {
	name, _, _ := strings.Cut(f.call, "(")
	return name
}

// functions are all of them, by what they are about. In a condition on elements, # is the element and .field a field of it.
var functions = []struct {
	title string
	of    []function
}{
	{"Lists", []function{
		{"all(list, condition)", "whether it holds for each element", `all([1, 2], # > 0)`, `true`},
		{"any(list, condition)", "whether it holds for an element", `any([{"ok": false}, {"ok": true}], .ok)`, `true`},
		{"concat(list, list, …)", "the elements of all", `concat([1], [2, 3])`, `[1,2,3]`},
		{"count(list[, condition])", "for how many elements it holds", `count([1, 2, 3], # > 1)`, `2`},
		{"filter(list, condition)", "the elements for which it holds", `filter([1, 2, 3], # > 1)`, `[2,3]`},
		{"find(list, condition)", "the first element for which it holds, or nil", `find([1, 2, 3], # > 1)`, `2`},
		{"findIndex(list, condition)", "the place of that element, from 0, or nil", `findIndex([1, 2, 3], # > 1)`, `1`},
		{"findLast(list, condition)", "the last element for which it holds, or nil", `findLast([1, 2, 3], # > 1)`, `3`},
		{"findLastIndex(list, condition)", "the place of that element, or nil", `findLastIndex([1, 2, 3], # > 1)`, `2`},
		{"first(list)", "the first element, or nil", `first([7, 8])`, `7`},
		{"flatten(list)", "the elements, with those of lists within in their place", `flatten([1, [2, [3]]])`, `[1,2,3]`},
		{"groupBy(list, value)", "an object of lists, by the text that each element gives", `groupBy(["a", "bb", "c"], string(len(#)))`, `{"1":["a","c"],"2":["bb"]}`},
		{"last(list)", "the last element, or nil", `last([7, 8])`, `8`},
		{"len(value)", "how many elements a list has, fields an object, or characters a text", `len([7, 8])`, `2`},
		{"map(list, value)", "what each element gives", `map([1, 2], # * 10)`, `[10,20]`},
		{"none(list, condition)", "whether it holds for no element", `none([1, 2], # > 2)`, `true`},
		{"one(list, condition)", "whether it holds for exactly one element", `one([1, 2], # > 1)`, `true`},
		{"reduce(list, value[, start])", "one value made of all, where #acc is what it has come to", `reduce([1, 2, 3], #acc + #, 0)`, `6`},
		{"reverse(list)", "the elements from the last to the first", `reverse([1, 2])`, `[2,1]`},
		{`sort(list[, "desc"])`, "the elements in order", `sort([3, 1, 2])`, `[1,2,3]`},
		{`sortBy(list, value[, "desc"])`, "the elements in the order of what each gives", `sortBy([{"n": 2}, {"n": 1}], .n)`, `[{"n":1},{"n":2}]`},
		{"take(list, n)", "the first n elements", `take([1, 2, 3], 2)`, `[1,2]`},
		{"uniq(list)", "the elements without those that came before", `uniq([1, 2, 1])`, `[1,2]`},
	}},
	{"Objects", []function{
		{"fromPairs(list)", "an object of names with their values", `fromPairs([["a", 1], ["b", 2]])`, `{"a":1,"b":2}`},
		{"get(value, name)", "a field of an object or an element of a list, nil where it is missing", `get({"a": 1}, "b")`, `null`},
	}},
	{"Texts", []function{
		{"hasPrefix(text, part)", "whether it begins so", `hasPrefix("v1.2", "v")`, `true`},
		{"hasSuffix(text, part)", "whether it ends so", `hasSuffix("a.go", ".go")`, `true`},
		{"indexOf(text, part)", "the byte at which the part first begins, from 0; -1 where it is not in it", `indexOf("a/b/c", "/")`, `1`},
		{"join(list[, glue])", "the texts of a list as one", `join(["a", "b"], ", ")`, `"a, b"`},
		{"lastIndexOf(text, part)", "the byte at which the part last begins, or -1", `lastIndexOf("a/b/c", "/")`, `3`},
		{"lower(text)", "in small letters", `lower("Ab")`, `"ab"`},
		{"repeat(text, n)", "n times", `repeat("ab", 2)`, `"abab"`},
		{"replace(text, old, new[, n])", "with new in the place of old, n times at most", `replace("a-b-c", "-", ".")`, `"a.b.c"`},
		{"split(text, by[, n])", "the list of the parts, n at most", `split("a,b", ",")`, `["a","b"]`},
		{"splitAfter(text, by[, n])", "the same, each part with what ends it", `splitAfter("a,b", ",")`, `["a,","b"]`},
		{"trim(text[, characters])", "without space, or those characters, at both ends", `trim(" a ")`, `"a"`},
		{"trimPrefix(text, part)", "without that beginning", `trimPrefix("v1.2", "v")`, `"1.2"`},
		{"trimSuffix(text, part)", "without that end", `trimSuffix("a.go", ".go")`, `"a"`},
		{"upper(text)", "in capitals", `upper("Ab")`, `"AB"`},
	}},
	{"Numbers", []function{
		{"abs(n)", "without its sign", `abs(-2)`, `2`},
		{"bitand(a, b)", "the bits that are in both", `bitand(6, 3)`, `2`},
		{"bitnand(a, b)", "the bits of a that are not in b", `bitnand(6, 3)`, `4`},
		{"bitnot(a)", "the other bits", `bitnot(5)`, `-6`},
		{"bitor(a, b)", "the bits that are in either", `bitor(6, 3)`, `7`},
		{"bitshl(a, n)", "the bits n places to the left", `bitshl(1, 3)`, `8`},
		{"bitshr(a, n)", "the bits n places to the right", `bitshr(8, 3)`, `1`},
		{"bitushr(a, n)", "the same without a sign", `bitushr(-1, 60)`, `15`},
		{"bitxor(a, b)", "the bits that are in one of both", `bitxor(6, 3)`, `5`},
		{"ceil(n)", "the next whole number above", `ceil(2.1)`, `3`},
		{"floor(n)", "the next whole number below", `floor(2.9)`, `2`},
		{"max(n, …)", "the largest of numbers, or of a list", `max(1, 2)`, `2`},
		{"mean(n, …)", "the average", `mean([1, 2])`, `1.5`},
		{"median(n, …)", "the one in the middle", `median([1, 2, 9])`, `2`},
		{"min(n, …)", "the smallest", `min([1, 2])`, `1`},
		{"round(n)", "the nearest whole number", `round(2.5)`, `3`},
		{"sum(list[, value])", "the sum of a list, or of what each element gives", `sum([{"n": 1}, {"n": 2}], .n)`, `3`},
	}},
	{"From one type to another", []function{
		{"duration(text)", "a time, of which .Seconds() and .Minutes() are numbers", `duration("1m30s").Seconds()`, `90`},
		{"float(value)", "a text as a number", `float("1.5")`, `1.5`},
		{"fromBase64(text)", "what it stands for", `fromBase64("YQ==")`, `"a"`},
		{"fromJSON(text)", "the value of a text of JSON", `fromJSON("[1]")`, `[1]`},
		{"int(value)", "a text as a whole number; of a number what is before the point", `int("7")`, `7`},
		{"string(value)", "as a text", `string(5)`, `"5"`},
		{"toBase64(text)", "in base 64", `toBase64("a")`, `"YQ=="`},
		{"toJSON(value)", "as a text of JSON", `fromJSON(toJSON({"a": 1}))`, `{"a":1}`},
		{"type(value)", "what it is: nil, bool, int, float, string, array or map", `type("a")`, `"string"`},
	}},
}

// functionList is the part of the page on functions, in Markdown.
func functionList() string {
	var b strings.Builder
	b.WriteString("\nThese are all functions. In a condition or value for each element, `#` is the element and `.name` a field of it.\n")
	for _, group := range functions {
		fmt.Fprintf(&b, "\n%s:\n\n", group.title)
		for _, f := range group.of {
			fmt.Fprintf(&b, "- `%s`: %s. `%s` is `%s`.\n", f.call, f.does, f.shown, f.gives)
		}
	}
	return b.String()
}

// functionNames are the names of all functions, for suggestions.
func functionNames() []string {
	var out []string
	for _, group := range functions {
		for _, f := range group.of {
			out = append(out, f.name())
		}
	}
	slices.Sort(out)
	return out
}
