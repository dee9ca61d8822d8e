package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

const evalFlow = `wf: 1
name: story
inputs: {topic: {type: string, required: true}}
limits: {steps: 20, duration: 10m}
roles:
  writer: {prompt: You write., tools: [write_file, read_file]}
  judge: {workflow: judge.yaml, with: {text: "${{ steps.writer.text }}"}}
edges:
  - {from: START, to: writer, prompt: "Write about ${{ inputs.topic }}."}
  - {from: writer, to: judge}
  - {from: judge, to: END}
outputs: {text: "${{ steps.writer.text }}", verdict: "${{ steps.judge.output.verdict }}"}
`

const evalJudge = `wf: 1
name: judge
inputs: {text: {type: string, required: true}}
roles:
  critic: {prompt: You judge., output: {type: object, properties: {verdict: {type: string}}, required: [verdict]}}
edges:
  - {from: START, to: critic, prompt: "Judge: ${{ inputs.text }}"}
  - {from: critic, to: END}
outputs: {verdict: "${{ output.verdict }}"}
`

// storyteller is a provider that writes a file, tells a story, and judges it.
func storyteller(t *testing.T, story string) *modeltest.Server {
	return modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		switch {
		case strings.Contains(string(r.Body), "You judge."):
			return modeltest.Text("---\nverdict: fine\n---\nFine.")
		case r.Results() == 0:
			return modeltest.Calls(modeltest.Call{ID: "a", Name: "write_file", Args: `{"path":"story.txt","content":"once"}`})
		}
		return modeltest.Text(story)
	})
}

// evalRun is wf eval -o json, whatever its exit status.
func (p place) eval(exit int, args ...string) (e api.Eval) {
	p.t.Helper()
	out := p.wf(exit, append([]string{"eval", "-o", "json"}, args...)...)
	if err := json.Unmarshal(out, &e); err != nil {
		p.t.Fatalf("%v in\n%s", err, out)
	}
	return e
}

// What live models answer is recorded for each case, those of sub-workflows too, though the cases run side by side and share
// their models. The tapes answer without the provider, by request, and by sequence once prompts changed.
func TestM03TapesOfLiveModelsAnswerWithoutThem(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			s := storyteller(t, "Once upon a time.")
			p := newPlace(t, wire.env(s))
			write(t, p.dir, "story.yaml", evalFlow)
			write(t, p.dir, "judge.yaml", evalJudge)
			write(t, p.dir, "suite.yaml", `workflow: story.yaml
models: `+wire.model+`
parallel: 4
defaults: {expect: {that: ['outputs.verdict == "fine"', 'outputs.text contains "Once"']}, check: grep -q once story.txt}
cases:
  - {name: cats, inputs: {topic: cats}, tape: tapes/cats.jsonl}
  - {name: dogs, inputs: {topic: dogs}, tape: tapes/dogs.jsonl}
  - {name: fish, inputs: {topic: fish}, tape: tapes/fish.jsonl}
`)
			e := p.eval(0, "suite.yaml", "--record")
			if e.Passed != 3 || e.Cases[1].Runs[0].Recorded != "tapes/dogs.jsonl" {
				t.Fatalf("recorded: %+v", e)
			}
			live := len(s.Requests())
			if live != 9 {
				t.Errorf("%d requests were sent, want 9", live)
			}
			for _, name := range []string{"cats", "dogs", "fish"} {
				text, err := os.ReadFile(filepath.Join(p.dir, "tapes", name+".jsonl"))
				if err != nil || strings.Count(string(text), "\n") != 3 || !strings.Contains(string(text), "about "+name) {
					t.Errorf("the tape of %s has %d lines: %v", name, strings.Count(string(text), "\n"), err)
				}
			}
			e = p.eval(0, "suite.yaml", "-n", "2")
			for _, c := range e.Cases {
				if c.Verdict != api.EvalPassed || c.Tape == nil || c.Tape.Match != "request" || c.Tape.Requests != 6 || c.Tape.Differed != 0 {
					t.Errorf("%s: %s %s, tape %+v", c.Name, c.Verdict, c.Why, c.Tape)
				}
			}
			write(t, p.dir, "story.yaml", strings.ReplaceAll(evalFlow, "You write.", "You write well."))
			e = p.eval(0, "suite.yaml")
			for _, c := range e.Cases { // the critic is asked as before
				if c.Verdict != api.EvalPassed || c.Tape.Match != "sequence" || c.Tape.Requests != 3 || c.Tape.Differed != 2 {
					t.Errorf("%s: %s %s, tape %+v", c.Name, c.Verdict, c.Why, c.Tape)
				}
			}
			if n := len(s.Requests()); n != live {
				t.Errorf("the provider was asked %d times more", n-live)
			}
			e = p.eval(0, "suite.yaml", "--live", "--case", "cats", "-n", "5")
			if c := e.Cases[0]; c.Tape != nil || c.Rate.Low == nil || c.Rate.N != 5 || len(s.Requests()) != live+15 {
				t.Errorf("live: %+v, %d requests", c, len(s.Requests())-live)
			}
			p.prove()
		})
	}
}

const evalAsks = `wf: 1
name: asks
inputs: {topic: {type: string, required: true}}
limits: {steps: 5, duration: 10m}
roles: {writer: {prompt: You write.}}
edges:
  - {from: START, to: writer, prompt: "Write about ${{ inputs.topic }}."}
  - {from: writer, to: END}
outputs: {text: "${{ output.text }}"}
`

// topics is a suite of so many cases.
func topics(n int, more string) string {
	var s strings.Builder
	s.WriteString("workflow: asks.yaml\nmodels: openai/test\n" + more + "cases:\n")
	for i := range n {
		fmt.Fprintf(&s, "  - {name: case %d, inputs: {topic: topic %d}}\n", i, i)
	}
	return s.String()
}

// prices writes the config of the user of a place.
func (p place) prices(text string) {
	p.t.Helper()
	for _, v := range p.env {
		if home, ok := strings.CutPrefix(v, "HOME="); ok {
			if err := os.MkdirAll(filepath.Join(home, ".config", "wf"), 0o700); err != nil {
				p.t.Fatal(err)
			}
			write(p.t, filepath.Join(home, ".config", "wf"), "config.yaml", text)
		}
	}
}

// All runs together cost no more than is allowed, but for the call that reached the limit: also side by side, since each
// reserves before it begins. What a limit cut goes on with more money.
func TestM03MoneyIsReservedBeforeARunBegins(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer {
		a := modeltest.Text("A story.")
		a.Usage = true
		return a
	})
	p := newPlace(t, "OPENAI_BASE_URL="+s.URL)
	write(t, p.dir, "asks.yaml", evalAsks)
	write(t, p.dir, "suite.yaml", topics(8, ""))
	// No price, and no limit of tokens: refused before anything is asked.
	out := p.wf(3, "eval", "suite.yaml", "--max-cost", "1", "-o", "json")
	if !strings.Contains(string(out), "has no price") || !strings.Contains(string(out), "--max-tokens") || len(s.Requests()) != 0 {
		t.Fatalf("%d requests, %s", len(s.Requests()), out)
	}
	if e := p.eval(0, "suite.yaml", "--max-cost", "1", "--max-tokens", "1000000"); e.Passed != 8 || e.CostUSD != nil {
		t.Errorf("without a price: %+v", e)
	}
	p.prices("prices: {openai/test: {input: 1000000000, output: 1000000000}}\n") // $0.001 for a token
	e := p.eval(0, "suite.yaml", "--max-cost", "1000", "--parallel", "4")
	if e.Passed != 8 || e.CostUSD == nil || *e.CostUSD <= 0 {
		t.Fatalf("with enough: %+v", e)
	}
	each, before := *e.CostUSD/8, len(s.Requests())
	most := fmt.Sprintf("%.6f", 3.5*each)
	e = p.eval(6, "suite.yaml", "--max-cost", most, "--parallel", "2")
	asked := len(s.Requests()) - before
	if e.Complete || e.Passed+e.Cut != 8 || e.Cut == 0 || e.Passed < 2 || asked > 5 || *e.CostUSD > 5*each+1e-9 {
		t.Errorf("with %s: %d passed, %d cut, %d requests, $%v of $%v each", most, e.Passed, e.Cut, asked, *e.CostUSD, each)
	}
	passed := e.Passed
	e = p.eval(0, "suite.yaml", "--max-cost", "1000", "--parallel", "2", "--continue")
	remembered := 0
	for _, c := range e.Cases {
		if c.Runs[0].Remembered {
			remembered++
		}
	}
	if !e.Complete || e.Passed != 8 || remembered != passed || len(s.Requests())-before != 8 {
		t.Errorf("gone on: %d passed, %d remembered of %d, %d requests in both", e.Passed, remembered, passed, len(s.Requests())-before)
	}
	p.prove()
}

// A thousand cases with tapes, and answers of five megabytes, are judged; the XML is read by encoding/xml.
func TestM03AThousandCasesAndAnswersOfFiveMegabytes(t *testing.T) {
	oneAfterAnother(t)
	t.Parallel()
	long := strings.Repeat("Once upon a time. \x00\x1b[31m", 1) + strings.Repeat("<story> & more ", 5<<20/15)
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		if strings.Contains(string(r.Body), "about long") {
			return modeltest.Text(long)
		}
		return modeltest.Text("Short.")
	})
	p := newPlace(t, "OPENAI_BASE_URL="+s.URL)
	write(t, p.dir, "asks.yaml", evalAsks)
	write(t, p.dir, "long.yaml", `workflow: asks.yaml
models: openai/test
cases:
  - name: long
    inputs: {topic: long}
    tape: long.jsonl
    n: 2
    expect:
      that:
        - {value: outputs.text, contains: "& more", excludes: nothing}
        - len(outputs.text) > 5000000
  - name: "long & <wrong>"
    inputs: {topic: long}
    tape: wrong.jsonl
    expect: {that: [{value: outputs.text, equals: short}, {value: outputs.text, matches: '^\['}]}
`)
	p.eval(1, "long.yaml", "--record")
	e := p.eval(1, "long.yaml", "--junit", "long.xml")
	if e.Passed != 1 || e.Failed != 1 || e.Cases[0].Tape.Match != "request" || len(e.Cases[1].Why) > 2000 {
		t.Errorf("long: %d passed, %d failed; %.300s", e.Passed, e.Failed, e.Cases[1].Why)
	}
	suites := junitIn(t, p, "long.xml")
	if x := suites.Suites[0]; x.Tests != 2 || x.Failures != 1 || x.Cases[1].Name != "long & <wrong>" || !strings.Contains(x.Cases[1].Failure.Text, "outputs.text: want") {
		t.Errorf("JUnit: %+v", x)
	}

	const cases = 1000
	var suite strings.Builder
	suite.WriteString("workflow: asks.yaml\nmodels: openai/test\nparallel: 8\ndefaults: {expect: {that: ['outputs.text == \"Short.\"']}}\ncases:\n")
	for i := range cases {
		tape := "tapes/one.jsonl"
		fmt.Fprintf(&suite, "  - {name: case %d, inputs: {topic: topic %d}, tape: %s}\n", i, i%10, tape)
	}
	write(t, p.dir, "suite.yaml", suite.String())
	p.eval(0, "suite.yaml", "--record", "--case", "case 7")
	asked := len(s.Requests())
	e = p.eval(0, "suite.yaml", "--junit", "many.xml")
	byRequest := 0
	for _, c := range e.Cases {
		if c.Tape.Match == "request" {
			byRequest++
		}
	}
	if e.Passed != cases || byRequest != cases/10 || len(s.Requests()) != asked {
		t.Errorf("%d passed, %d by request, %d asked", e.Passed, byRequest, len(s.Requests())-asked)
	}
	if x := junitIn(t, p, "many.xml"); x.Tests != cases || len(x.Suites[0].Cases) != cases || x.Suites[0].Cases[0].Failure != nil {
		t.Errorf("JUnit: %d tests", x.Tests)
	}
}

type junitRead struct {
	Tests  int `xml:"tests,attr"`
	Suites []struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Text string `xml:",chardata"`
			} `xml:"failure"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func junitIn(t *testing.T, p place, name string) (x junitRead) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(text)))
	d.Strict = true
	if err := d.Decode(&x); err != nil {
		t.Fatal(err)
	}
	return x
}

// kill -9 while a model is asked: --continue asks it again in the same run, and a run that a tape answers begins anew, so that its
// requests are counted from the first.
func TestM03KilledWhileAModelIsAsked(t *testing.T) {
	t.Parallel()
	asked, killed := make(chan struct{}, 1), make(chan struct{})
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		a := modeltest.Text("A story.")
		if strings.Contains(string(r.Body), "topic 2") {
			a.Before = func() {
				select {
				case asked <- struct{}{}:
					<-killed
				default:
				}
			}
		}
		return a
	})
	p := newPlace(t, "OPENAI_BASE_URL="+s.URL)
	write(t, p.dir, "asks.yaml", evalAsks)
	write(t, p.dir, "suite.yaml", topics(4, ""))
	p.killed(asked, "eval", "suite.yaml")
	close(killed)
	var runs api.Page
	p.read(&runs, "ls")
	e := p.eval(0, "suite.yaml", "--continue")
	if e.Passed != 4 || !e.Cases[0].Runs[0].Remembered || !e.Cases[1].Runs[0].Remembered || e.Cases[2].Runs[0].Remembered {
		t.Errorf("gone on: %+v", e.Cases)
	}
	if len(runs.Items) != 3 || e.Cases[2].Runs[0].Run != runs.Items[0].ID {
		t.Errorf("the run that was killed was %v, and %s went on", runs.Items, e.Cases[2].Runs[0].Run)
	}
	p.prove()
}
