package main

import (
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

// An answer that was cut off is the answer of a role without output; the run warns of it, and so
// does wf show. A reply that was cut off and followed by another is none to warn of.
func TestF19AnAnswerThatWasCutOffIsWarnedOf(t *testing.T) {
	t.Parallel()
	half := modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Text: "Half an ans"}, {Finish: "length"}}}
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t, half, half, modeltest.Text("---\nstatus: done\n---\nAll."))
			p := newPlace(t, wire.env(s))
			write(t, p.dir, "half.yaml", `wf: 1
name: half
roles:
  coder: {prompt: You code., timeout: 1m}
  strict:
    prompt: You check.
    timeout: 1m
    output: {type: object, required: [status], properties: {status: {type: string}}}
edges:
  - {from: START, to: coder, prompt: Begin.}
  - {from: coder, to: strict}
  - {from: strict, to: END}
`)
			out := string(p.wf(0, "run", "half.yaml", "--model", wire.model))
			if strings.Count(out, "coder#1 was cut off: its answer has as many tokens as it may have") != 1 || strings.Contains(out, "strict#1 was cut off") {
				t.Errorf("the run ends with\n%s", out)
			}
			var v api.Run
			p.read(&v, "show", "-1")
			if !v.Steps[0].CutOff || v.Steps[1].CutOff {
				t.Errorf("cut off: %v and %v", v.Steps[0].CutOff, v.Steps[1].CutOff)
			}
			if out := string(p.wf(0, "show", "-1")); !strings.Contains(out, "(cut off)") {
				t.Errorf("show tells\n%s", out)
			}
			if out := string(p.wf(0, "show", "-1:coder#1")); !strings.Contains(out, "was cut off") {
				t.Errorf("the step tells\n%s", out)
			}
		})
	}
}
