package lang_test

import (
	"strings"
	"testing"

	"wf/engine/lang"
)

// TestASlipInAnExpressionIsToldWithTheWayOut is the table of what people write who think of YAML, or of another language.
func TestASlipInAnExpressionIsToldWithTheWayOut(t *testing.T) {
	const file = `wf: 1
limits: {duration: 1m}
inputs: {list: {type: array, default: [1]}, object: {type: object, default: {a: 1}}}
roles:
  a:
    set: {x: SET}
  b:
    ask: Well?
    form: {type: object, properties: {f: {type: string, default: FORM}}}
edges:
  - {from: START, to: a}
  - {from: a, to: END, when: WHEN}
  - {from: a, to: b}
  - {from: b, to: END}
`
	for _, c := range []struct {
		name, place, value string
		want               []string // parts of the only error; none: there is none
	}{
		{"a line end in a text", "WHEN", `"output.x == '\n'"`, []string{"12:30: ", "literal not terminated", `write \\n`}},
		{"the same in a template", "SET", `"${{ split('a', '\n') }}"`, []string{"6:", "literal not terminated", "single quotes around"}},
		{"a quote that is not closed", "WHEN", `'output.x == "a'`, []string{"12:", "a quote begins a text and none ends it"}},
		{"a line end in single quotes", "WHEN", `'string(output.x) == "\n"'`, nil},
		{"a comma in braces", "WHEN", "any(inputs.list, .b)", []string{"12:47: ", `the value of when ends at a comma`, `when: "any(inputs.list, .b)"`}},
		{"several commas in braces", "WHEN", "contains(reduce(inputs.list, x, 0), 3)", []string{`when: "contains(reduce(inputs.list, x, 0), 3)"`}},
		{"a list in braces", "WHEN", "output.x in [1, 2]", []string{"12:", "inside { } and [ ], put a value", "in quotes"}},
		{"a hash in braces", "WHEN", "any(inputs.list, # > 1)", []string{"inside { } and [ ], put a value", "in quotes"}},
		{"a function that is misspelt", "WHEN", "filtre(output.x)", []string{"unknown function filtre", `did you mean "filter"?`}},
		{"a function that nothing is like", "WHEN", "regexReplaceAll(output.x)", []string{"unknown function regexReplaceAll", "wf help expressions"}},
		{"an object that is gone through", "WHEN", `"any(inputs.object, # == 1)"`, []string{"takes only a list (got an object)", "name its fields"}},
		{"the fields of an object", "WHEN", "len(keys(inputs.object)) > 0", []string{"keys is switched off", "an object has no order"}},
		{"the clock", "WHEN", "now() == 1", []string{"now is switched off", "pass the value in as an input"}},
		{"an expression in a form", "FORM", `"${{ inputs.list }}"`, []string{"9:", "roles.b.form is fixed", "the text of ask"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := strings.NewReplacer("SET", "1", "WHEN", "output.x == 1", "FORM", "x")
			text := src.Replace(strings.Replace(file, c.place, c.value, 1))
			_, ds := lang.Load([]byte(text), lang.Options{File: "t.yaml"})
			var got strings.Builder
			lang.Render(&got, []byte(text), ds, false)
			if lang.HasErrors(ds) != (c.want != nil) || c.want != nil && !strings.Contains(got.String(), "\n1 error,") {
				t.Errorf("got:\n%s", got.String())
			}
			for _, want := range c.want {
				if !strings.Contains(got.String(), want) {
					t.Errorf("lacks %q:\n%s", want, got.String())
				}
			}
		})
	}
}

// TestF213ABlockOfOneExpressionHasItsType holds that the check of a file knows what a run does: space around the only
// expression does not count, whichever way the text is written.
func TestF213ABlockOfOneExpressionHasItsType(t *testing.T) {
	for _, text := range []string{`"${{ inputs.list }}"`, `" ${{ inputs.list }} "`, "|\n        ${{ inputs.list }}\n", ">-\n        ${{ inputs.list }}\n"} {
		src := "wf: 1\nlimits: {duration: 1m}\ninputs: {list: {type: array, default: [1]}}\nroles:\n  a:\n    set:\n      x: " + text +
			"\n  b: {set: {y: '${{ item }}'}}\nedges:\n  - {from: a, to: b, for_each: output.x}\n  - {from: b, to: END}\n"
		p, ds := lang.Load([]byte(src), lang.Options{File: "t.yaml"})
		if p == nil {
			t.Errorf("%s: %v", text, ds)
			continue
		}
		items, err := p.ForEach(1, lang.Scope{Output: map[string]any{"x": []any{1}}})
		if err != nil || len(items) != 1 {
			t.Errorf("%s: %v, %v", text, items, err)
		}
	}
}
