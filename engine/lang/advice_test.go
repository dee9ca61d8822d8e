package lang_test

import (
	"strings"
	"testing"

	"wf/engine/lang"
)

// TestAdviceNamesKeysThatAreThere loads what people bring along from other tools.
func TestAdviceNamesKeysThatAreThere(t *testing.T) {
	for _, c := range []struct{ yaml, hint string }{
		{"roles: {a: {run: ls, if: x}}", "use when, a key of the edge that leads there: {from: …, to: …, when: …}"},
		{"roles: {a: {run: ls, condition: x}}", "use when, a key of the edge that leads there: {from: …, to: …, when: …}"},
		{"roles: {a: {run: ls, depends_on: [b]}}", "use edges, a key at the top of the file"},
		{"roles: {a: {run: ls, foreach: x}}", "use for_each, a key of the edge that leads there: {from: …, to: …, for_each: …}"},
		{"roles: {a: {prompt: Go., system: x}}", "use prompt"},
		{"roles: {a: {run: ls, timeout_seconds: 3}}", "use timeout: 90s"},
		{"roles: {a: {run: ls, continue-on-error: true}}", `did you mean "continue_on_error"?`},
		{"roles: {a: {prompt: Go., temperature: 0.2}}", "it is a parameter of the model: params: {temperature: …}"},
		{"roles: {a: {prompt: Go., max_tokens: 9}}", "it is a parameter of the model: params: {max_tokens: …}"},
		{"roles: {a: {prompt: Go., stop: [x]}}", "it is a parameter of the model: params: {stop: …}"},
		{"defaults: {seed: 1}\nroles: {a: {prompt: Go.}}", "it is a parameter of the model: params: {seed: …}"},
		{"roles: {a: {run: ls}}\nedges: [{from: a, to: END, if: x}]", "use when"},
		{"roles: {a: {run: ls}}\nedges: [{from: a, to: END, else: b}]", "an edge without when at the end of the role's list is the default"},
		{"roles: {a: {run: ls}}\nversion: 2", "use wf: 1"},
		{"roles: {a: {run: ls}}\njobs: {}", "use roles"},
	} {
		_, ds := lang.Load([]byte("wf: 1\nname: t\nlimits: {duration: 1h, cost_usd: 1}\n"+c.yaml), lang.Options{})
		if len(ds) == 0 || ds[0].Code != "WF001" || ds[0].Hint != c.hint {
			t.Errorf("%s: %v, want the hint %q", c.yaml, ds, c.hint)
		}
	}
}

// TestAnObjectInACallWantsParentheses: expr reads { } there as what is done with each item.
func TestAnObjectInACallWantsParentheses(t *testing.T) {
	for expr, says := range map[string]bool{
		`map(output.l, {"a": .x})`:             true,
		`map(output.l, {name: #.x, b: 2})`:     true,
		`map(output.l, {})`:                    true,
		`reduce(output.l, {"a": #acc})`:        true,
		`map(output.l, ({"a": .x}))`:           false,
		`{"a": output.l`:                       false,
		`filter(output.l, .x == ", {" ? 1 : )`: false,
	} {
		_, ds := lang.Load([]byte("wf: 1\nname: t\nlimits: {cost_usd: 1, duration: 1h}\nroles:\n  a: {set: {l: [{x: 1}]}}\n  b:\n    set:\n      y: >-\n        ${{ "+expr+" }}\n"), lang.Options{})
		said := len(ds) > 0 && strings.Contains(ds[0].Hint, "an object wants parentheses")
		if said != says {
			t.Errorf("%s: %v", expr, ds)
		}
	}
}
