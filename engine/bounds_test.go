package engine_test

import (
	"strings"
	"testing"

	"wf/protocol"
)

// A bound that is reached beside a visit that failed is named with it, and lifted with it.
func TestF70ABoundBesideAFailureIsNamedAndLifted(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: beside
roles:
  s: {set: {n: 1}}
  loop: {set: {n: "${{ (steps.loop?.visit ?? 0) + 1 }}"}}
  bad: {run: "test -e ok"}
  last: {set: {n: 1}}
edges:
  - {from: START, to: s}
  - {from: s, to: [loop, bad]}
  - {from: loop, to: loop, when: output.n < 3, limit: 1}
  - {from: loop, to: END, when: output.n >= 3}
  - {from: bad, to: last}
  - {from: last, to: END}
`, nil)
	if v.Status != protocol.Suspended || v.Suspended != protocol.ByError || !strings.Contains(v.Reason, "limit of 1") {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	v = b.drive(id) // bad fails again, the loop goes on
	if got := strings.Join(steps(v), " "); !strings.Contains(got, "loop#3 ok") {
		t.Errorf("%s; %s", got, v.Reason)
	}
}
