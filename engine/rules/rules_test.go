package rules_test

import (
	"strings"
	"testing"

	"wf/protocol"
)

const done = protocol.Done

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		status     protocol.RunStatus
		steps      string // ids with their status, in order of dispatch
		reason     string // part of it
		outputs    string
	}{
		{"roles without edges run in the order written", `
wf: 1
name: chain
roles:
  a: {set: {n: 1}}
  b: {set: {n: "${{ output.n + 1 }}"}}
outputs: {n: "${{ steps.b.output.n }}"}
`, done, "a#1 ok, b#1 ok", "", `{"n":2}`},
		{"the first edge whose condition holds wins: W-13", `
wf: 1
name: first
roles:
  a: {set: {n: 5}}
  small: {set: {x: 1}}
  big: {set: {x: 2}}
  huge: {set: {x: 3}}
edges:
  - {from: START, to: a}
  - {from: a, to: small, when: output.n < 3}
  - {from: a, to: big, when: output.n < 10}
  - {from: a, to: huge}
  - {from: small, to: END}
  - {from: big, to: END}
  - {from: huge, to: END}
`, done, "a#1 ok, big#1 ok", "", "{}"},
		{"route all gives every edge that holds a token", `
wf: 1
name: all
roles:
  a: {set: {n: 5}, route: all}
  b: {set: {x: 1}}
  c: {set: {x: 2}}
  d: {set: {x: 3}}
edges:
  - {from: START, to: a}
  - {from: a, to: b, when: output.n > 1}
  - {from: a, to: c, when: output.n > 100}
  - {from: a, to: d, when: output.n > 2}
  - {from: b, to: END}
  - {from: c, to: END}
  - {from: d, to: END}
`, done, "a#1 ok, b#1 ok, d#1 ok", "", "{}"},
		{"a join waits for all and sees their outputs", `
wf: 1
name: join
roles:
  a: {set: {n: 1}}
  b: {set: {n: 2}}
  c: {set: {n: 3}}
  d: {set: {sum: "${{ outputs.b.n + outputs.c.n }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: [b, c]}
  - {from: [b, c], to: d}
  - {from: d, to: END}
outputs: {sum: "${{ steps.d.output.sum }}"}
`, done, "a#1 ok, b#1 ok, c#1 ok, d#1 ok", "", `{"sum":5}`},
		{"an entry beyond the limit takes on_limit: W-15", `
wf: 1
name: bound
roles:
  a: {set: {n: 1}}
  out: {set: {v: "${{ steps.a.visit }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: a, limit: 2, on_limit: out}
  - {from: out, to: END}
outputs: {v: "${{ steps.out.output.v }}"}
`, done, "a#1 ok, a#2 ok, a#3 ok, out#1 ok", "", `{"v":3}`},
		{"without on_limit a bound suspends: W-15", `
wf: 1
name: bound
roles:
  a: {set: {n: 1}, max_visits: 2}
edges:
  - {from: START, to: a}
  - {from: a, to: a, when: output.n == 1}
  - {from: a, to: END}
`, protocol.Suspended, "a#1 ok, a#2 ok", "max_visits of a, 2", ""},
		{"a fan-out gives its outputs in item order", `
wf: 1
name: fan
roles:
  a: {set: {items: [3, 1, 2]}}
  w: {set: {double: "${{ item * 2 }}", at: "${{ index }}"}}
  z: {set: {all: "${{ map(output, .double) }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: w, for_each: output.items, max_parallel: 2, prompt: "item ${{ item }}"}
  - {from: w, to: z}
  - {from: z, to: END}
outputs: {all: "${{ steps.z.output.all }}"}
`, done, "a#1 ok, w#1[0] ok, w#1[1] ok, w#1[2] ok, z#1 ok", "", `{"all":[6,2,4]}`},
		{"an empty fan-out is one skipped step", `
wf: 1
name: empty
roles:
  a: {set: {items: []}}
  w: {set: {x: "${{ item }}"}}
  z: {set: {n: "${{ len(output) }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: w, for_each: output.items}
  - {from: w, to: z}
  - {from: z, to: END}
outputs: {n: "${{ steps.z.output.n }}"}
`, done, "a#1 ok, w#1 skipped, z#1 ok", "", `{"n":0}`},
		{"FAIL ends the run as failed", `
wf: 1
name: fails
roles:
  a: {set: {n: 1}}
edges:
  - {from: START, to: a}
  - {from: a, to: END, when: output.n > 1}
  - {from: a, to: FAIL}
`, protocol.Failed, "a#1 ok", "", ""},
		{"a token that no edge takes stalls the run", `
wf: 1
name: stalls
roles:
  a: {set: {n: 1}}
edges:
  - {from: START, to: a}
  - {from: a, to: END, when: output.n > 1}
`, protocol.Suspended, "a#1 ok", "no edge takes the output of a#1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.yaml, nil)
			v := w.play()
			if v.Status != c.status || !strings.Contains(v.Detail, c.reason) || string(v.Outputs) != c.outputs {
				t.Errorf("%s (%s), outputs %s", v.Status, v.Detail, v.Outputs)
			}
			if got := strings.Join(w.steps(), ", "); got != c.steps {
				t.Errorf("steps %s\nwant  %s", got, c.steps)
			}
		})
	}
}
