package lang_test

import (
	"fmt"
	"testing"

	"wf/engine/lang"
)

// TestExpressionsPeopleWriteAreAccepted holds each condition against one workflow and
// evaluates it where nothing has run and where everything has.
func TestExpressionsPeopleWriteAreAccepted(t *testing.T) {
	full := lang.Scope{
		Inputs: map[string]any{"tag": "x", "n": 3, "list": []any{"a"}, "o": map[string]any{"k": 1}},
		Output: map[string]any{"status": "done", "n": 2, "score": 2.5, "ok": true, "items": []any{map[string]any{"name": "a"}}, "text": "All is well.", "body": ""},
		Steps: map[string]*lang.Step{"coder": {Output: map[string]any{"status": "done"}, Text: "t", Status: "ok", Visit: 2},
			"test": {Output: map[string]any{"exit_code": 1}, Status: "ok", Visit: 1, ExitCode: new(int)}},
		EdgeVisit: 2,
	}
	for cond, want := range map[string]bool{
		`output.status == "done"`:                         true,
		`output.status in ["done", "stuck"]`:              true,
		`output.status != "stuck" and output.n >= 2`:      true,
		`not output.ok`:                                   false,
		`!(output.score > 2)`:                             false,
		`output.n == 2.0`:                                 true,
		`output.score > output.n`:                         true,
		`len(output.items) > 0`:                           true,
		`output.items[0].name == "a"`:                     true,
		`any(output.items, .name == "a")`:                 true,
		`all(output.items, {#.name startsWith "a"})`:      true,
		`count(output.items, .name != "a") == 0`:          true,
		`"a" in map(output.items, .name)`:                 true,
		`output.text contains "well"`:                     true,
		`output.text matches "^All"`:                      true,
		`lower(trim(output.text)) startsWith "all"`:       true,
		`(output.n ?? 0) > 1`:                             true,
		`output?.status == "done"`:                        true,
		`output["status"] == "done"`:                      true,
		`steps.test == nil`:                               false,
		`steps.test != nil && steps.test.exit_code == 0`:  true,
		`(steps.test?.exit_code ?? 1) == 0`:               true,
		`steps.test?.output.exit_code == 1`:               true,
		`steps["test"].visit == 1`:                        true,
		`steps.coder?.status == "failed"`:                 false,
		`inputs.tag == "x" ? true : false`:                true,
		`let k = inputs.n * 2; k > 5`:                     true,
		`inputs.n in 1..5`:                                true,
		`inputs.o.k == 1`:                                 true,
		`inputs.list[0] == "a"`:                           true,
		`inputs["n"] == 3`:                                true,
		`edge.visit < 3`:                                  true,
		`outputs.coder.status == "done"`:                  true,
		`inputs.tag | upper() == "X"`:                     true,
		`sum(map(output.items, len(.name))) == 1`:         true,
		`toJSON(inputs.o) contains "k"`:                   true,
		`fromJSON('{"a": true}').a`:                       true,
		`output.n / 2 == 1`:                               true,
		`max(output.n, 7) == 7`:                           true,
		`int("7") == 7 && string(7) == "7"`:               true,
		`split("a,b", ",")[1] == "b"`:                     true,
		`duration("1s").Seconds() == 1`:                   true,
		`output.text /* why */ != ""`:                     true,
		`first(output.items)?.name == "a"`:                true,
		`len(groupBy(output.items, .name)) == 1`:          true,
		`find(output.items, .name == "zzz")?.name == nil`: true,
	} {
		src := fmt.Sprintf(`wf: 1
name: t
inputs: {tag: string, n: integer, list: array, o: object}
limits: {cost_usd: 1, duration: 1h}
roles:
  test: {run: make test, continue_on_error: true}
  coder:
    prompt: Go.
    output:
      type: object
      properties:
        status: {enum: [done, stuck]}
        n: {type: integer}
        score: {type: number}
        ok: {type: boolean}
        items: {type: array, items: {type: object, properties: {name: {type: string}}}}
edges:
  - {from: START, to: test}
  - {from: test, to: coder}
  - from: coder
    to: END
    when: |
      %s
  - {from: coder, to: FAIL}
`, cond)
		p, ds := lang.Load([]byte(src), lang.Options{})
		if p == nil {
			t.Errorf("%s: %s", cond, ds[0].Message)
			continue
		}
		if got, err := p.When(2, full); err != nil || got != want {
			t.Errorf("%s: %v, %v", cond, got, err)
		}
		_, _ = p.When(2, lang.Scope{}) // an error at most
	}
}
