package rules_test

import (
	"slices"
	"testing"

	"wf/protocol"
)

// F-70: a resume lifts the bound that parked a token, not another one that had led it elsewhere.
func TestF70AResumeLiftsOnlyTheBoundThatParked(t *testing.T) {
	w := newWorld(t, `
wf: 1
name: two-bounds
roles:
  s: {set: {n: 1}}
  b: {set: {n: 1}}
  a: {set: {n: 1}, route: all}
edges:
  - {from: START, to: s}
  - {from: s, to: b}
  - {from: b, to: a}
  - {from: a, to: a, limit: 1}
  - {from: a, to: b, when: steps.a.visit > 1, limit: 1, on_limit: END}
`, nil)
	if v := w.play(); v.Status != protocol.Suspended || v.Reason != protocol.ByLimit {
		t.Fatalf("%s: %s", v.Status, v.Detail)
	}
	diverted, _ := w.recordOf("a#3") // it had come to END by the second bound
	w.say("", protocol.ResumedBy{By: "test"})
	v := w.play()
	lifted := false
	for _, r := range w.records {
		if !slices.Contains(r.Parents, diverted) {
			continue
		}
		if r.Role == "b" {
			t.Errorf("a visit of b follows a#3, which a bound had led to END: %v", w.steps())
		}
		lifted = lifted || r.Role == "a"
	}
	if !lifted {
		t.Errorf("nothing follows a#3: %v, %s", w.steps(), v.Detail)
	}
}
