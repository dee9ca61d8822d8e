package main

import (
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

// A step that times out while its model is silent made a call: it counts, and what it used is
// unknown, not 0.
func TestF15ATimedOutCallIsInTheCost(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer {
				return modeltest.Answer{Say: []modeltest.Piece{{Text: "hm"}}, Stall: true}
			})
			p := newPlace(t, wire.env(s))
			write(t, p.dir, "slow.yaml", `wf: 1
name: slow
roles:
  coder: {prompt: You code., timeout: 1s}
edges:
  - {from: START, to: coder, prompt: Begin.}
  - {from: coder, to: END}
`)
			p.wf(1, "run", "slow.yaml", "--model", wire.model, "-q")
			var c api.Cost
			p.read(&c, "cost", "-1")
			told := map[string]int{"Anthropic": 1}[wire.name] // by its first event
			if c.Total.Calls != 1 || c.Total.Unreported != 1-told || c.Total.CostUSD != nil {
				t.Errorf("it cost %+v", c.Total)
			}
			if out := string(p.wf(0, "log", "-1")); !strings.Contains(out, "given up before it answered") {
				t.Errorf("the log does not tell of it:\n%s", out)
			}
			p.prove()
		})
	}
}
