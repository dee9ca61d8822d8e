package rules_test

import (
	"testing"

	"wf/protocol"
)

// Neither a visit that is held nor one that waits for a slot of a group works: while there is nothing else the run is
// not active, and held if one of them is. What works beside them makes it active.
func TestWhatIsHeldOrInLineDoesNotWork(t *testing.T) {
	w := newWorld(t, `
wf: 1
name: kept
roles:
  a: {run: "true"}
  b: {run: "true", concurrency: g}
edges:
  - {from: START, to: [a, b]}
  - {from: [a, b], to: END}
`, nil)
	p, err := w.s.Next()
	w.must(err)
	for _, d := range p.Start {
		w.begin(d)
	}
	begun := w.s.Totals.Active
	held := protocol.Held{Provider: "p", Limit: protocol.HeldByTokens}
	for _, at := range []struct {
		step   string
		says   protocol.Data
		active bool
		held   bool
		passed int64 // ms, in all, in which it was active
	}{
		{"b#1", protocol.GroupWaiting{Group: "g", Ticket: 2}, true, false, 1},
		{"a#1", held, false, true, 2},
		{"a#1", protocol.Released{MS: 1}, true, false, 2},
		{"a#1", held, false, true, 3},
		{"b#1", protocol.GroupEntered{Group: "g", Ticket: 2}, true, false, 3},
		{"b#1", held, false, true, 4},
		{"a#1", protocol.AttemptFailed{Attempt: 1}, false, true, 4},
		{"b#1", protocol.AttemptFailed{Attempt: 1}, false, false, 4},
	} {
		w.say(at.step, at.says)
		again, err := w.s.Snapshot().Restore(w)
		w.must(err)
		for _, s := range []interface{ Held() *protocol.Held }{w.s, again} {
			if got := s.Held() != nil; got != at.held {
				t.Errorf("after %s of %s: held: %v", at.says.EventType(), at.step, got)
			}
		}
		if w.s.Active != at.active || w.s.Totals.Active != begun+at.passed*1000 {
			t.Errorf("after %s of %s: active: %v, for %d µs more", at.says.EventType(), at.step, w.s.Active, w.s.Totals.Active-begun)
		}
	}
}
