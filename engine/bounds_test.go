package engine_test

import (
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// F-70: a resume lifts the bound that parked a token, not another one that had led it elsewhere.
func TestF70AResumeLiftsOnlyTheBoundThatParked(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
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
	if v.Status != protocol.Suspended || v.Suspended != protocol.ByLimit {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	diverted := "" // a#3 had come to END by the second bound
	for _, s := range v.Steps {
		if s.ID == "a#3" {
			diverted = *s.CID
		}
	}
	if diverted == "" {
		t.Fatalf("steps: %v", steps(v))
	}
	v = b.drive(id)
	lifted := false
	for _, s := range v.Steps {
		if !slices.Contains(s.Parents, diverted) {
			continue
		}
		if s.Role == "b" {
			t.Errorf("%s follows a#3, which a bound had led to END: %v", s.ID, steps(v))
		}
		lifted = lifted || s.Role == "a"
	}
	if !lifted {
		t.Errorf("nothing follows a#3: %v, %s", steps(v), v.Reason)
	}
}

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
