package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"wf/api"
)

// The example suite passes with its tapes, as docs/eval.md shows it, and nothing got worse since its baseline was written. A
// prompt that changed is told.
func TestM03TheExampleSuitePasses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("checks are confined, and only Linux has a sandbox")
	}
	p := newPlace(t)
	if err := os.CopyFS(p.dir, os.DirFS(filepath.Join("..", "..", "examples", "eval"))); err != nil {
		t.Fatal(err)
	}
	e := p.eval(0, "suite.yaml", "--baseline", "baseline.json", "--max-cost-increase", "0")
	if e.Passed != 3 || len(e.Changes)+len(e.Regressions) != 0 {
		t.Errorf("%d passed, %v, %v", e.Passed, e.Regressions, e.Changes)
	}
	for _, c := range e.Cases {
		if c.Tape == nil || c.Tape.Match != "request" {
			t.Errorf("%s: tape %+v: record it again: wf eval examples/eval/suite.yaml --record", c.Name, c.Tape)
		}
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "triage.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.dir, "triage.yaml", "# changed\n"+string(text)+"  more: none\n")
	if e = p.eval(0, "suite.yaml", "--baseline", "baseline.json"); len(e.Changes) != 3 || e.Changes[0].Kind != "outputs" || e.Cases[0].Tape.Match != "request" {
		t.Errorf("with another output: %+v", e.Changes)
	}
	var v api.Page
	p.read(&v, "ls")
	if len(v.Items) != 6 || v.Items[0].Tags[0] != "eval" {
		t.Errorf("%d runs in the store: %+v", len(v.Items), v.Items)
	}
}
