package lang_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
	"wf/protocol"
)

// load reads a workflow that must be valid.
func load(t testing.TB, src string) *lang.Program {
	t.Helper()
	p, ds := lang.Load([]byte(src), lang.Options{File: "t.yaml"})
	if p == nil {
		var b strings.Builder
		lang.Render(&b, []byte(src), ds, false)
		t.Fatal(b.String())
	}
	return p
}

func fixBug(t testing.TB) *lang.Program {
	t.Helper()
	src, err := os.ReadFile("testdata/fix-bug.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return load(t, string(src))
}

func TestTheExampleOfTheDesignDecidesItsEdges(t *testing.T) {
	p := fixBug(t)
	red := lang.Scope{Inputs: map[string]any{"package": "./..."}, Output: map[string]any{"exit_code": 1, "text": "FAIL"}}
	for _, c := range []struct {
		edge int
		s    lang.Scope
		want bool
	}{
		{0, lang.Scope{}, true},
		{1, red, false},
		{1, lang.Scope{Output: map[string]any{"exit_code": 0}}, true},
		{3, lang.Scope{Output: map[string]any{"status": "done"}}, true},
		{3, lang.Scope{Output: map[string]any{}}, false},
		{4, lang.Scope{}, true},
	} {
		if got, err := p.When(c.edge, c.s); err != nil || got != c.want {
			t.Errorf("edge %d: %v, %v; want %v", c.edge, got, err, c.want)
		}
	}
	text, err := p.EdgePrompt(2, red)
	if want := "The tests of ./... fail:\nFAIL"; err != nil || text != want {
		t.Errorf("edge prompt %q, %v; want %q", text, err, want)
	}
	for _, c := range []struct {
		steps map[string]*lang.Step
		want  string
	}{
		{nil, `{"summary":"already green"}`},
		{map[string]*lang.Step{"coder": nil}, `{"summary":"already green"}`},
		{map[string]*lang.Step{"coder": {Output: map[string]any{"summary": "off by one"}}}, `{"summary":"off by one"}`},
	} {
		got, err := p.Outputs(lang.Scope{Steps: c.steps})
		if err != nil || string(got) != c.want {
			t.Errorf("outputs %s, %v; want %s", got, err, c.want)
		}
	}
}

const values = `
wf: 1
name: t
secrets: [KEY]
inputs: {n: integer, f: number, s: string, list: array, o: object, b: boolean}
roles:
  a:
    set:
      same: "${{ inputs.o }}"
      spaced: "  ${{ inputs.n }}\n"
      text: "n=${{ inputs.n }} f=${{ inputs.f }} b=${{ inputs.b }} o=${{ inputs.o }} null=[${{ inputs.s }}]"
      deep: [1, 2.5, {k: "${{ inputs.list }}"}, true, null, plain]
      sum: "${{ sum(inputs.list) }}"
      mapped: "${{ map(inputs.list, # * 2) }}"
      range: "${{ 1..3 }}"
      half: "${{ inputs.n / 2 }}"
      braces: "${{ {'a': {'b': '}}'}} }}"
  b:
    run: env
    env: {N: "${{ inputs.n }}", AUTH: "Bearer ${{ secrets.KEY }}", FIXED: 3, S: "${{ inputs.s }}"}
  c: {ask: "Keep ${{ output?.n ?? 'nothing' }}?"}
  d: {wait: "${{ inputs.n }}m"}
  e: {prompt: "You speak ${{ inputs.s }}.", output: {type: object, properties: {ok: {type: boolean}}}}
edges:
  - {from: START, to: a}
  - {from: a, to: b, when: inputs.n}
  - {from: a, to: c}
  - {from: b, to: d, prompt: "${{ inputs.s }}", for_each: inputs.list}
  - {from: c, to: e}
  - {from: d, to: END}
  - {from: e, to: END, when: output.ok}
  - {from: e, to: FAIL, when: "1..1000000000 == inputs.list"}
  - {from: e, to: SUSPENDED}
outputs:
  ok: "${{ steps.e.output.ok }}"
  deep: "${{ steps.e.output.x.y.z ?? 'none' }}"
  n: 3
  len: ["${{ len(steps[\"e\"].text) }}"]
  list: ["${{ map(inputs.list ?? [], # + 1) }}"]
`

func valuesProgram(t testing.TB) *lang.Program {
	src := strings.NewReplacer(
		"when: inputs.n}", "when: inputs.n > 100}",
		", when: \"1..1000000000 == inputs.list\"", ", when: \"len(1..1000000000) > 3\"",
		"  - {from: e, to: SUSPENDED}\n", "  - {from: e, to: END}\n",
		"steps.e.output.x.y.z ??", "steps.a.output.same.y.z ??",
		"output?.n", "output?.same").Replace(values)
	return load(t, src)
}

func valuesScope() lang.Scope {
	return lang.Scope{Inputs: map[string]any{"n": 7, "f": 2.5, "b": true, "list": []any{1, 2, 3}, "o": map[string]any{"z": 1, "a": []any{"x"}}}}
}

func TestAValueThatIsOneExpressionKeepsItsType(t *testing.T) {
	p := valuesProgram(t)
	role, _ := p.Workflow.RoleNamed("a")
	r, err := p.Templates(role, valuesScope())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"braces":{"a":{"b":"}}"}},"deep":[1,2.5,{"k":[1,2,3]},true,null,"plain"],"half":3.5,"mapped":[2,4,6],` +
		`"range":[1,2,3],"same":{"a":["x"],"z":1},"spaced":7,"sum":6,` +
		`"text":"n=7 f=2.5 b=true o={\"a\":[\"x\"],\"z\":1} null=[]"}`
	if string(r.Values) != want {
		t.Errorf("got  %s\nwant %s", r.Values, want)
	}
}

func TestRolesAreRenderedWithTheirScope(t *testing.T) {
	p := valuesProgram(t)
	s := valuesScope()
	s.Inputs["s"] = "Go"
	s.Output = map[string]any{"same": "these"}
	render := func(name string) lang.Rendered {
		role, _ := p.Workflow.RoleNamed(name)
		r, err := p.Templates(role, s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if diff := cmp.Diff(map[string]string{"N": "7", "AUTH": "Bearer " + protocol.SecretRef("KEY"), "FIXED": "3", "S": "Go"}, render("b").Env); diff != "" {
		t.Error(diff)
	}
	if got := render("c").Question; got != "Keep these?" {
		t.Error(got)
	}
	if got := render("d").Wait.For; got != "7m" {
		t.Error(got)
	}
	if got := render("e").System; got != "You speak Go." {
		t.Error(got)
	}
}

func TestAValueCannotForgeASecret(t *testing.T) {
	p := valuesProgram(t)
	s := valuesScope()
	s.Inputs["s"] = protocol.SecretRef("KEY")
	role, _ := p.Workflow.RoleNamed("b")
	if _, err := p.Templates(role, s); err == nil || !strings.Contains(err.Error(), "env.S: inputs.s: the value holds a NUL byte") {
		t.Errorf("got %v", err)
	}
}

func TestOutputsOfStepsThatNeverRanAreNull(t *testing.T) {
	got, err := valuesProgram(t).Outputs(lang.Scope{})
	if want := `{"deep":"none","len":null,"list":[[]],"n":3,"ok":null}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestAnOutputThatFailsThoughEverythingRanIsAnError(t *testing.T) {
	s := lang.Scope{Inputs: map[string]any{"list": []any{"x"}}, Steps: map[string]*lang.Step{"a": {}, "e": {}}}
	if _, err := valuesProgram(t).Outputs(s); err == nil || !strings.HasPrefix(err.Error(), "outputs: list: map(inputs.list ?? [], # + 1): ") {
		t.Error(err)
	}
}

func TestAnErrorOfAnExpressionNamesItsSource(t *testing.T) {
	p := valuesProgram(t)
	for _, c := range []struct {
		name string
		edge int
		s    lang.Scope
		want string
	}{
		{"null where a number is wanted", 1, lang.Scope{}, "edge 1: when: inputs.n > 100: "},
		{"null where true or false is wanted", 6, lang.Scope{Output: map[string]any{}}, "edge 6: when: output.ok: the value is null, not true or false"},
		{"a field of null", 6, lang.Scope{}, "edge 6: when: output.ok: cannot fetch ok from null"},
		{"more memory than the budget", 7, lang.Scope{}, "edge 7: when: len(1..1000000000) > 3: memory budget exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := p.When(c.edge, c.s); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := p.ForEach(3, lang.Scope{Inputs: map[string]any{"list": "x"}}); err == nil || !strings.Contains(err.Error(), `inputs.list: the value is the string "x", not a list`) {
		t.Errorf("for_each: %v", err)
	}
	if got, err := p.ForEach(3, valuesScope()); err != nil || !cmp.Equal(got, []any{1, 2, 3}) {
		t.Errorf("for_each: %v, %v", got, err)
	}
}

func TestALongEdgePromptIsCutAtARune(t *testing.T) {
	p := valuesProgram(t)
	for _, s := range []string{strings.Repeat("x", protocol.EdgePromptMax), strings.Repeat("語", 20_000), "x" + strings.Repeat("語", 20_000), "xx" + strings.Repeat("語", 20_000)} {
		got, err := p.EdgePrompt(3, lang.Scope{Inputs: map[string]any{"s": s}})
		if err != nil || len(got) > protocol.EdgePromptMax || strings.ContainsRune(got, '\ufffd') {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if cut := strings.HasSuffix(got, "…[cut]"); cut != (len(s) > protocol.EdgePromptMax) {
			t.Errorf("%d bytes: cut is %v", len(s), cut)
		}
		if !strings.HasPrefix(s, strings.TrimSuffix(got, "…[cut]")) || len(got) < protocol.EdgePromptMax-4 {
			t.Errorf("%d bytes cut to %d", len(s), len(got))
		}
	}
}

func TestExplainTellsEveryPartOfACondition(t *testing.T) {
	p := load(t, `
wf: 1
name: t
inputs: {n: integer}
roles: {a: {run: ls, timeout: 1m, continue_on_error: true}}
edges:
  - {from: a, to: END, when: output.exit_code == 0 && (inputs.n > 3 || steps.a.visit > 2)}
  - {from: a, to: FAIL}
`)
	e := p.Explain(1, lang.Scope{Inputs: map[string]any{"n": 4}, Output: map[string]any{"exit_code": 0}})
	var got []string
	for _, term := range e.Terms {
		v := fmt.Sprint(term.Value)
		if term.Err != nil {
			v = "error"
		}
		got = append(got, term.Source+" = "+v)
	}
	want := []string{"output.exit_code == 0 = true", "inputs.n > 3 = true", "steps.a.visit > 2 = error",
		"inputs.n = 4", "output.exit_code = 0", "steps.a.visit = <nil>"}
	if diff := cmp.Diff(want, got); diff != "" || !e.Holds || e.Err != nil {
		t.Errorf("holds %v, %v\n%s", e.Holds, e.Err, diff)
	}
}

func TestACompiledProgramNeedsItsSubWorkflows(t *testing.T) {
	_, err := lang.Compile(&protocol.Workflow{Name: "t", Edges: []protocol.Edge{{When: "1 +"}}}, nil)
	if !errors.Is(err, protocol.ErrInvalid) {
		t.Error(err)
	}
}
