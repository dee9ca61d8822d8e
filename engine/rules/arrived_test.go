package rules_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/rules"
	"wf/protocol"
)

const arrivalsYAML = `
wf: 1
name: arrivals
inputs: {n: {type: integer}}
limits: {steps: 30}
roles:
  fork: {set: {n: "${{ inputs.n }}"}, route: all}
  left: {set: {n: "${{ output.n }}"}}
  right: {set: {n: "${{ output.n }}"}}
  sum: {set: {n: "${{ inputs.n }}"}}
edges:
  - {from: START, to: fork}
  - {from: fork, to: [left, right]}
  - {from: [left, right], to: FAIL, when: inputs.n == 2}
  - {from: [left, right], to: sum}
  - {from: sum, to: END, when: output.n == 1}
  - {from: sum, to: left, limit: 1, on_limit: END}
`

func TestTheLastEdgesOfARunAreItsArrivals(t *testing.T) {
	for name, c := range map[string]struct {
		n    int
		want []rules.Arrival
	}{
		"the end":           {1, []rules.Arrival{{Edge: 4, At: protocol.NodeEnd, Via: protocol.ViaEdge}}},
		"failure by a join": {2, []rules.Arrival{{Edge: 2, At: protocol.NodeFail, Via: protocol.ViaEdge}}},
	} {
		w := newWorld(t, arrivalsYAML, map[string]any{"n": c.n})
		v := w.play()
		if diff := cmp.Diff(c.want, w.s.Arrivals()); diff != "" {
			t.Errorf("%s (%s %s): -want +got\n%s", name, v.Status, v.Detail, diff)
		}
	}
}

func TestABoundThatIsExhaustedIsAnArrivalToo(t *testing.T) {
	const yaml = `
wf: 1
name: loop
limits: {steps: 30}
roles:
  ping: {set: {n: 1}}
  pong: {set: {n: 1}}
edges:
  - {from: START, to: ping}
  - {from: ping, to: END, when: output.n == 7}
  - {from: ping, to: pong}
  - {from: pong, to: ping, limit: 2%s}
`
	for onLimit, want := range map[string]rules.Arrival{
		", on_limit: END": {Edge: 3, At: protocol.NodeEnd, Via: protocol.ViaLimit},
		"":                {Edge: 3, At: protocol.NodeSuspend, Via: protocol.ViaLimit},
	} {
		w := newWorld(t, fmt.Sprintf(yaml, onLimit), nil)
		v := w.play()
		if diff := cmp.Diff([]rules.Arrival{want}, w.s.Arrivals()); diff != "" {
			t.Errorf("%q (%s %s): -want +got\n%s", onLimit, v.Status, v.Detail, diff)
		}
	}
}
