package lang_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wf/engine/lang"
)

const suiteFlow = `wf: 1
name: review
inputs: {topic: {type: string, required: true}, size: {type: integer, default: 3}}
roles:
  writer: {prompt: You write., model: script/x.yaml, output: {type: object, properties: {score: {type: integer}}}}
  gate: {ask: Publish?, choices: [yes, no]}
  save: {run: "true"}
edges:
  - {from: START, to: writer}
  - {from: writer, to: gate}
  - {from: gate, to: save}
  - {from: save, to: END}
outputs: {score: "${{ steps.writer.output.score }}", text: "${{ steps.writer.text }}"}
`

func readSuite(t *testing.T, text string) (*lang.Suite, []string) {
	t.Helper()
	s, ds := lang.ReadSuite([]byte(text), "suite.yaml", func(name string) (*lang.Program, error) {
		if name != "review.yaml" {
			return nil, errors.New(name + " is not there")
		}
		p, ds := lang.Load([]byte(suiteFlow), lang.Options{})
		if p == nil {
			t.Fatal(ds)
		}
		return p, nil
	})
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%d:%d %s %s (%s)", d.Range.Start.Line, d.Range.Start.Col, d.Code, d.Message, d.Hint))
	}
	if (s == nil) != lang.HasErrors(ds) {
		t.Errorf("the suite is %v with %q", s, out)
	}
	return s, out
}

// All mistakes of a suite are told at once, each with its place, and with what was probably meant.
func TestM03AllMistakesOfASuiteAreToldAtOnce(t *testing.T) {
	_, got := readSuite(t, `workflow: review.yaml
paralel: 3
pass: 1.5
models: {writr: a/b, gate: a/b}
max_cost: -1
defaults: {n: 0, input: {}, inputs: {topik: x}}
cases:
  - {inputs: {topic: cats}}
  - {name: one, inputs: {topic: 3}, n: 1001}
  - {name: one, inputs: {topic: cats}, files: ../x, tape: /etc/passwd}
  - name: two
    inputs: {topic: cats}
    answers: {gat: yes, writer: no, gate: [{chioce: yes}]}
    expect:
      status: finished
      schema: {type: 7}
      that:
        - outputs.scor > 3
        - output.score > 3
        - inputs.sise > 3
        - steps.writr.text == ""
        - run.sttus == "done"
        - outputs.score
        - outputs.text +
        - now() > 3
        - {value: outputs.text}
        - {value: outputs.text, matches: '(', contain: x}
        - {equals: 3}
  - just text
`)
	for _, want := range []string{
		`2:1 WF001 unknown key "paralel" in the suite (did you mean "parallel"?)`,
		`3:7 WF002 pass wants a share of the runs, above 0 and at most 1, got "1.5"`,
		`4:10 WF010 the workflow has no role "writr" that is an agent (did you mean "writer"?)`,
		`4:22 WF010 the workflow has no role "gate" that is an agent`,
		`5:11 WF002 max_cost wants`,
		`6:15 WF002 defaults.n is 0; it must be at least 1`,
		`6:18 WF001 unknown key "input" in defaults (did you mean "inputs"?)`,
		`6:38 WF031 the workflow has no input "topik" (did you mean "topic"?)`,
		`8:5 WF002 cases[0] lacks the key "name"`,
		`9:40 WF002 cases[1].n is 1001; it must be at most 1000`,
		`10:12 WF018 there are two cases "one"`,
		`10:47 WF002 cases[2].files leads out of the directory of the suite: "../x"`,
		`10:59 WF002 cases[2].tape leads out of the directory of the suite: "/etc/passwd"`,
		`13:15 WF010 the workflow has no role "gat" that is a question (ask) (did you mean "gate"?)`,
		`13:25 WF010 the workflow has no role "writer" that is a question`,
		`13:45 WF001 unknown key "chioce" in cases[3].answers.gate[0] (did you mean "choice"?)`,
		`15:15 WF002 cases[3].expect.status wants one of done, failed, cancelled, suspended, got "finished"`,
		`16:15 WF002 schema is no JSON Schema`,
		`18:19 WF022 outputs has no field "scor" (did you mean "score"?)`,
		`19:11 WF020 there is no output here`,
		`20:18 WF020 unknown input "sise" (did you mean "size"?)`,
		`21:17 WF010 unknown role "writr" in steps (did you mean "writer"?)`,
		`22:15 WF022 run has no field "sttus" (did you mean "status"?)`,
		`25:11 WF024 now is switched off`,
		`26:11 WF002 nothing is expected of the value`,
		`27:42 WF002 matches wants a regular expression`,
		`27:47 WF001 unknown key "contain" in cases[3].expect.that[9] (did you mean "contains"?)`,
		`28:11 WF002 cases[3].expect.that[10] lacks the key "value"`,
		`29:5 WF002 cases[4] wants a mapping, got a string`,
	} {
		found := false
		for _, line := range got {
			found = found || strings.HasPrefix(line, want) || strings.HasPrefix(line, want[:strings.LastIndexByte(want, '(')+1]) && line == want
		}
		if !found {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

// A hostile suite is refused, at once and in bounds.
func TestM03AHostileSuiteIsRefused(t *testing.T) {
	bomb := "x-a: &a [1,2,3,4,5,6,7,8,9]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("x-%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	many := "workflow: review.yaml\ncases:\n" + strings.Repeat("  - {name: a}\n", 10_001)
	for name, text := range map[string]string{
		"nothing": "", "a list": "- 1\n", "a text": "hello", "no UTF-8": "workflow: \xff", "a bomb": bomb, "deep": strings.Repeat("[", 5000), "long": strings.Repeat("#", 5<<20),
		"an alias in itself": "workflow: review.yaml\ncases: &a [*a]\n", "twice": "workflow: review.yaml\nworkflow: review.yaml\ncases: [{name: a}]\n",
		"no cases": "workflow: review.yaml\ncases: []\n", "null cases": "workflow: review.yaml\ncases:\n", "no workflow": "workflow: other.yaml\ncases: [{name: a}]\n",
		"many": many, "an escape in a name": "workflow: review.yaml\ncases: [{name: \"a\\e[31m\", inputs: {topic: x}}]\n", "null values": "workflow: ~\ncases: [~, {name: ~, expect: ~, inputs: ~, answers: ~}]\ndefaults: ~\nmodels: ~\n",
		"odd values":   "workflow: review.yaml\ndefaults: 7\nmodels: [[1]]\ncases: [{name: a, inputs: [1], expect: {that: {a: 1}, schema: [1]}, answers: [1], tags: {a: 1}}]\n",
		"not a number": "workflow: review.yaml\ncases: [{name: a, inputs: {topic: .nan}, expect: {that: [{value: outputs, equals: .inf}]}}]\n",
	} {
		s, got := readSuite(t, text)
		if s != nil || len(got) == 0 {
			t.Errorf("%s: accepted, %q", name, got)
		}
	}
}

// What a case says takes the place of what the defaults say, inputs and answers key by key; expectations add up.
func TestM03DefaultsOfASuite(t *testing.T) {
	s, got := readSuite(t, `workflow: review.yaml
models: {writer: [a/b, c/d]}
max_cost: 1.50
pass: 0.8
defaults:
  inputs: {topic: cats, size: 1}
  answers: {gate: yes}
  files: shared
  check: "true"
  n: 5
  tags: slow
  expect: {status: [done, failed], that: [inputs.size == 1]}
cases:
  - {name: one}
  - {name: two, inputs: {size: 2}, answers: {gate: [no, {choice: yes, text: so}]}, files: own, check: "false", n: 2, pass: 0.5, tags: [fast, slow], max_tokens: 9, expect: {status: done, that: [outputs.score == 3]}}
`)
	if s == nil {
		t.Fatal(got)
	}
	one, two := s.Cases[0], s.Cases[1]
	if one.Inputs["size"] != 1 || one.Files != "shared" || one.Check != "true" || one.N != 5 || one.Pass != 0.8 || one.Answers["gate"][0].Text != "yes" || one.Line != 14 {
		t.Errorf("one is %+v", one)
	}
	if two.Inputs["size"] != 2 || two.Inputs["topic"] != "cats" || two.Files != "own" || two.Check != "false" || two.N != 2 || two.Pass != 0.5 ||
		strings.Join(two.Tags, " ") != "slow fast" || len(two.Answers["gate"]) != 2 || two.Answers["gate"][1].Choice != "yes" || two.MaxTokens != 9 {
		t.Errorf("two is %+v", two)
	}
	if s.MaxCost != 1_500_000 || strings.Join(s.Models["writer"], " ") != "a/b c/d" {
		t.Errorf("the suite is %+v", s)
	}
	ended := lang.Ended{Status: "failed", Inputs: map[string]any{"size": 2}, Outputs: map[string]any{"score": 4}, Run: map[string]any{"reason": "no"}}
	if wrong := one.Expect.Judge(ended); strings.Join(wrong, "|") != "inputs.size == 1: false" {
		t.Errorf("one: %q", wrong)
	}
	if wrong := two.Expect.Judge(ended); strings.Join(wrong, "|") != "status: want done, got failed: no|inputs.size == 1: false|outputs.score == 3: false" {
		t.Errorf("two: %q", wrong)
	}
}

// What is expected is judged on runs that lack it: nothing panics, and the text is bounded.
func TestM03ExpectationsOfWhatIsNotThere(t *testing.T) {
	s, got := readSuite(t, `workflow: review.yaml
cases:
  - name: one
    inputs: {topic: cats}
    expect:
      status: suspended
      that:
        - outputs.score > 3
        - steps.save.exit_code == 0
        - run.cost_usd == nil
        - {value: outputs.text, contains: a, excludes: b, matches: c, equals: d, schema: {type: string, minLength: 3}}
        - {value: steps.writer.output.score, equals: ~}
        - {value: 'repeat("x", 1000000000)', contains: y}
`)
	if s == nil {
		t.Fatal(got)
	}
	e := s.Cases[0].Expect
	wrong := e.Judge(lang.Ended{Status: "suspended"})
	if len(wrong) != 7 || !strings.Contains(wrong[3], `"" does not contain`) {
		t.Errorf("%d: %q", len(wrong), wrong)
	}
	long := strings.Repeat("z\x1b", 3<<20)
	wrong = e.Judge(lang.Ended{Status: "suspended", Outputs: map[string]any{"score": 4, "text": long}, Steps: map[string]*lang.Step{"save": {ExitCode: new(int)}}})
	for _, line := range wrong {
		if len(line) > 1500 {
			t.Errorf("a line of %d bytes: %.100s", len(line), line)
		}
	}
}
