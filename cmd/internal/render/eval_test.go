package render

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"wf/api"
)

const hostile = "a \x00\x1b[31m\x7f\u0085\ufffe\xff ]]> <b attr='\"&\n::error::x%0A\r\t##[error]"

func hostileEval() *api.Eval {
	run := api.EvalRun{Run: "7K3Q", Verdict: api.EvalFailed, ActiveMS: 1500}
	cases := []api.EvalCase{
		{Name: hostile, Verdict: api.EvalFailed, Why: hostile + strings.Repeat("x", 5<<20), Hint: hostile, Runs: []api.EvalRun{run}, Line: 7},
		{Name: "error", Verdict: api.EvalError, Code: hostile, Why: hostile, Runs: []api.EvalRun{run}},
		{Name: "cut", Verdict: api.EvalCut}, {Name: "open", Verdict: api.EvalOpen}, {Name: "passed", Verdict: api.EvalPassed}, {Name: "worse", Verdict: api.EvalPassed, Tape: &api.EvalTape{Match: "sequence", Requests: 2, Differed: 1}},
	}
	return &api.Eval{Suite: hostile, Workflow: hostile, Cases: cases, Baseline: hostile, Regressions: []api.EvalRegression{{Case: "worse", Kind: "cost", Old: hostile, New: hostile}}}
}

// JUnit XML is well formed whatever cases are called and runs say, with a text in the place of what XML cannot hold.
func TestM03JUnitOfHostileTextsIsWellFormed(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJUnit(&b, hostileEval()); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var x struct {
		Suites []struct {
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Errors   int    `xml:"errors,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Time     string `xml:"time,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	s := x.Suites[0]
	if s.Tests != 6 || s.Failures != 2 || s.Errors != 1 || s.Skipped != 2 || s.Time != "3.000" {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped in %s s", s.Tests, s.Failures, s.Errors, s.Skipped, s.Time)
	}
	if name := s.Cases[0].Name; !strings.HasPrefix(name, `a \u0000\u001b[31m\u007f\u0085\ufffe`+"\ufffd ]]> <b attr='\"&") {
		t.Errorf("the name is %q", name)
	}
	if f := s.Cases[5].Failure; f == nil || !strings.Contains(f.Text, "worse than the baseline, cost") {
		t.Errorf("the regression is %+v", f)
	}
	if n := len(s.Cases[0].Failure.Message); n > 1500 {
		t.Errorf("a message of %d bytes", n)
	}
}

// No text of a case acts on a terminal, or is a workflow command of GitHub.
func TestM03TextsOfCasesDoNotAct(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	var out, errs bytes.Buffer
	p := New(&Screen{Writer: &out}, &Screen{Writer: &errs})
	e := hostileEval()
	table := p.NewEvalTable(len(e.Cases), 10)
	for i := range e.Cases {
		table.Tell(e, &e.Cases[i], nil)
	}
	table.Close()
	if err := p.ShowEval(e); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{out.String(), errs.String()} {
		if strings.ContainsAny(text, "\x00\x1b\x7f\r") || len(text) > 10_000 {
			t.Errorf("%d bytes: %.500q", len(text), text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
				t.Errorf("a workflow command: %q", line)
			}
		}
	}
	for _, line := range EvalAnnotations(e) {
		if strings.Contains(line, "\n") || strings.Count(line, "\r") > 0 || !strings.HasPrefix(line, "::error file=") {
			t.Errorf("annotation %.200q", line)
		}
	}
}

// On a terminal what is under way stands in one line below the cases that are decided, and is wiped at the end.
func TestM03WhatIsUnderWayStandsBelow(t *testing.T) {
	var errs bytes.Buffer
	p := New(&Screen{Writer: io.Discard}, &Screen{Writer: &errs, TTY: true, Width: 80})
	p.Color = "never"
	p.UseColors()
	table := p.NewEvalTable(2, 3)
	one, two := &api.EvalCase{Name: "one", Verdict: api.EvalPassed}, &api.EvalCase{Name: "two", Verdict: api.EvalFailed, Why: "no"}
	open := &api.EvalRun{Verdict: api.EvalOpen}
	table.Tell(nil, one, open)
	table.Tell(nil, two, open)
	table.Tell(nil, one, &api.EvalRun{Run: "A", Verdict: api.EvalPassed})
	table.Tell(nil, one, nil)
	table.Close()
	got := errs.String()
	for _, want := range []string{"0 of 2 cases · one\n", "0 of 2 cases · one, two\n", "0 of 2 cases · two\n", "✓ one", "1 of 2 cases · two\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if !strings.HasSuffix(got, "\x1b[1A\r\x1b[J") {
		t.Errorf("what was under way is left: %q", got)
	}
}
