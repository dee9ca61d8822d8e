package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// wholePast is a whole journal as rules.Past reads it.
type wholePast struct {
	ended map[protocol.Link]string
	how   map[protocol.Link]protocol.StepCompleted
	begun map[string]protocol.StepStarted
}

func (b *bench) wholePast(id protocol.RunID) wholePast {
	b.t.Helper()
	x := wholePast{map[protocol.Link]string{}, map[protocol.Link]protocol.StepCompleted{}, map[string]protocol.StepStarted{}}
	for _, e := range b.entries(id) {
		switch e.Type {
		case protocol.EvStepStarted:
			d, err := cas.DecodeData[protocol.StepStarted](&e.Event)
			if err != nil {
				b.t.Fatal(err)
			}
			x.begun[e.StepName()] = d
		case protocol.EvStepCompleted:
			d, err := cas.DecodeData[protocol.StepCompleted](&e.Event)
			if err != nil {
				b.t.Fatal(err)
			}
			x.ended[d.Record], x.how[d.Record] = e.StepName(), d
		}
	}
	return x
}

func (x wholePast) Ended(l protocol.Link) (string, protocol.StepCompleted, error) {
	return x.ended[l], x.how[l], nil
}

func (x wholePast) Begun(step string) (protocol.StepStarted, error) {
	d, ok := x.begun[step]
	if !ok {
		return d, fmt.Errorf("no %s", step)
	}
	return d, nil
}

// causeWords are a cause on one line.
func causeWords(c *api.Cause) string {
	switch {
	case c == nil:
		return "none"
	case c.Failed:
		return strings.Join(append([]string{c.Step + " failed"}, c.Road...), " ")
	}
	return strings.Join(append([]string{c.Step}, c.Road...), " ")
}

// causes are workflows that fail, with the step with which that began and the steps to FAIL.
var causes = map[string]struct{ workflow, cause, reason string }{
	"the last step failed": {`
roles: {a: {set: {n: 1}}, b: {run: exit 3}}
edges:
  - {from: START, to: a}
  - {from: a, to: b}
  - {from: b, to: END}
  - {from: b, to: FAIL, on: failure}
`, "b#1 failed", "b#1 led to FAIL"},
	"a saga takes back what it did": {`
roles: {flight: {set: {n: 1}}, hotel: {set: {n: 1}}, car: {run: exit 3}, undo_hotel: {set: {n: 1}}, undo_flight: {set: {n: 1}}}
edges:
  - {from: START, to: flight}
  - {from: flight, to: hotel}
  - {from: hotel, to: car}
  - {from: car, to: END}
  - {from: car, to: undo_hotel, on: failure}
  - {from: undo_hotel, to: undo_flight}
  - {from: undo_flight, to: FAIL, prompt: All is taken back.}
`, "car#1 failed undo_hotel#1 undo_flight#1", "car#1: exit status 3; undo_flight#1 led to FAIL: All is taken back."},
	"a step that takes back fails too": {`
roles: {car: {run: exit 3}, undo_hotel: {run: exit 4}, undo_flight: {set: {n: 1}}}
edges:
  - {from: START, to: car}
  - {from: car, to: END}
  - {from: car, to: undo_hotel, on: failure}
  - {from: undo_hotel, to: undo_flight}
  - {from: undo_hotel, to: undo_flight, on: failure}
  - {from: undo_flight, to: FAIL}
`, "car#1 failed undo_hotel#1 undo_flight#1", "car#1: exit status 3; undo_flight#1 led to FAIL"},
	"a fallback fails": {`
roles: {first: {run: exit 3}, second: {run: exit 4}, tell: {set: {n: 1}}}
edges:
  - {from: START, to: first}
  - {from: first, to: END}
  - {from: first, to: second, on: failure}
  - {from: second, to: END}
  - {from: second, to: tell, on: failure}
  - {from: tell, to: FAIL}
`, "second#1 failed tell#1", "second#1: exit status 4; tell#1 led to FAIL"},
	"an output chooses": {`
roles: {first: {run: exit 3}, second: {set: {n: 1}}, review: {set: {good: false}}, tell: {set: {n: 1}}}
edges:
  - {from: START, to: first}
  - {from: first, to: second}
  - {from: first, to: second, on: failure}
  - {from: second, to: review}
  - {from: review, to: END, when: output.good}
  - {from: review, to: tell}
  - {from: tell, to: FAIL}
`, "review#1 tell#1", "tell#1 led to FAIL"},
	"a condition names the step that failed": {`
roles: {build: {run: exit 3}, beside: {set: {n: 1}}, report: {set: {n: 1}}}
edges:
  - {from: START, to: beside}
  - {from: beside, to: build}
  - {from: build, to: report}
  - {from: build, to: report, on: failure}
  - {from: report, to: FAIL, when: steps.build.status == "failed"}
  - {from: report, to: END}
`, "build#1 failed report#1", "build#1: exit status 3; report#1 led to FAIL"},
	"an item of a fan-out failed": {`
roles: {list: {set: {items: [1, 2, 3, 4]}}, test: {run: 'test "$I" -lt 3', env: {I: "${{ item }}"}}, tidy: {set: {n: 1}}}
edges:
  - {from: START, to: list}
  - {from: list, to: test, for_each: output.items}
  - {from: test, to: END}
  - {from: test, to: tidy, on: failure}
  - {from: tidy, to: FAIL}
`, "test#1[2] failed tidy#1", "test#1[2]: exit status 1; tidy#1 led to FAIL"},
	"a step fails at a bound": {`
roles: {test: {run: exit 1, continue_on_error: true}, code: {set: {n: 1}}}
edges:
  - {from: START, to: test}
  - {from: test, to: END, when: output.exit_code == 0}
  - {from: test, to: code, limit: 2, on_limit: FAIL}
  - {from: code, to: test}
`, "test#3", "edge 2 (test → code) reached its limit of 2, which leads to FAIL"},
	"one of two branches fails": {`
roles: {s: {set: {n: 1}}, a: {run: exit 3}, b: {set: {n: 1}}, undo: {set: {n: 1}}}
edges:
  - {from: START, to: s}
  - {from: s, to: [a, b]}
  - {from: a, to: END}
  - {from: a, to: undo, on: failure}
  - {from: b, to: END}
  - {from: undo, to: FAIL}
`, "a#1 failed undo#1", "a#1: exit status 3; undo#1 led to FAIL"},
	"branches that join are taken back": {`
roles: {s: {set: {n: 1}}, a: {run: exit 3}, b: {set: {n: 1}}, undo: {set: {n: 1}}, keep: {set: {n: 1}}}
edges:
  - {from: START, to: s}
  - {from: s, to: [a, b]}
  - {from: a, to: END}
  - {from: a, to: undo, on: failure}
  - {from: b, to: keep}
  - {from: [undo, keep], to: FAIL}
`, "a#1 failed undo#1", "a#1: exit status 3; undo#1 and keep#1 led to FAIL"},
	"it was mended, and fails by something else": {`
roles: {test: {run: 'test -e mended'}, mend: {run: 'touch mended'}, review: {set: {good: false}}}
edges:
  - {from: START, to: test}
  - {from: test, to: review}
  - {from: test, to: mend, on: failure}
  - {from: mend, to: test, limit: 3}
  - {from: review, to: END, when: 'output.good && steps.test.status == "ok"'}
  - {from: review, to: FAIL}
`, "review#1", "review#1 led to FAIL"},
	"nothing leads to END": {`
roles: {a: {set: {n: 1}}, b: {set: {n: 1}}}
edges:
  - {from: START, to: a}
  - {from: a, to: b}
  - {from: b, to: FAIL}
`, "b#1", "b#1 led to FAIL"},
	"always roles run behind it": {`
roles: {a: {run: exit 3}, undo: {set: {n: 1}}, last: {run: exit 5}}
always: [last]
edges:
  - {from: START, to: a}
  - {from: a, to: END}
  - {from: a, to: undo, on: failure}
  - {from: undo, to: FAIL}
`, "a#1 failed undo#1", "a#1: exit status 3; undo#1 led to FAIL"},
}

// F208: a run that failed names the step with which the way to FAIL began, and not the messenger: from the state of a run that was
// folded as from one of which only the newest steps are left, and from the journal read backwards as from all of it.
func TestF208AFailedRunNamesTheStepBehindIt(t *testing.T) {
	for name, x := range causes {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id, v := b.run("wf: 1\nname: fails\ndefaults: {timeout: 1m}"+x.workflow, nil)
			if got := causeWords(v.Cause); v.Status != protocol.Failed || got != x.cause || v.Reason != x.reason {
				t.Errorf("%s by %s: %s; want %s: %s", v.Status, got, v.Reason, x.cause, x.reason)
			}
			if c := v.Cause; c != nil && c.Failed != (c.Error != nil) {
				t.Errorf("%s failed by %+v", c.Step, c.Error)
			}
			all := b.wholePast(id)
			s, err := b.e.StateAt(t.Context(), id, v.Seq)
			if err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{"all", "the newest"} {
				c, err := s.Cause(all)
				if err != nil || c == nil || causeWords(&api.Cause{Step: c.Step, Failed: c.Failed, Road: c.Road}) != x.cause {
					t.Errorf("with %s of its steps: %+v, %v", left, c, err)
				}
				s.Snapshot() // drops what the rules need no more
			}
		})
	}
}

// F208: what a long run did before the way to FAIL began is not read.
func TestF208TheCauseOfALongRunIsFoundFromItsEnd(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: long
defaults: {timeout: 1m}
limits: {steps: 5000}
roles: {count: {set: {n: "${{ (steps.count?.output.n ?? 0) + 1 }}"}}, last: {run: exit 3}, undo: {set: {n: 1}}}
edges:
  - {from: START, to: count}
  - {from: count, to: count, when: output.n < 1500, limit: 2000}
  - {from: count, to: last}
  - {from: last, to: END}
  - {from: last, to: undo, on: failure}
  - {from: undo, to: FAIL}
`, nil)
	if got := causeWords(v.Cause); got != "last#1 failed undo#1" {
		t.Fatalf("%s: %s", got, v.Reason)
	}
	s, err := b.e.StateAt(t.Context(), id, v.Seq)
	if err != nil {
		t.Fatal(err)
	}
	s.Snapshot()
	reads := countedPast{wholePast: b.wholePast(id)}
	if _, err := s.Cause(&reads); err != nil || reads.n > 6 {
		t.Errorf("%d steps of %d were looked up, %v", reads.n, len(v.Steps), err)
	}
}

// countedPast counts what is looked up.
type countedPast struct {
	wholePast
	n int
}

func (x *countedPast) Ended(l protocol.Link) (string, protocol.StepCompleted, error) {
	x.n++
	return x.wholePast.Ended(l)
}
