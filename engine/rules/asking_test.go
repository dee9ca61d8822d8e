package rules_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/engine/rules/rulestest"
	"wf/protocol"
)

// A modelled question is what the times of one are, without the rules: by lists that are searched anew each time.
type modelled struct {
	def    *protocol.Asking
	open   bool
	due    int64
	remind []int64 // still to come
	sent   int
	people []string
	raised int
}

func (m *modelled) ask(now int64) {
	m.open, m.raised, m.people = true, 0, m.def.Assignees
	m.times(now)
}

func (m *modelled) times(now int64) {
	m.due, m.remind, m.sent = 0, nil, 0
	if m.def.Timeout > 0 {
		m.due = now + m.def.Timeout
	}
	for _, r := range m.def.Remind {
		m.remind = append(m.remind, now+r)
	}
}

// next is when something is to happen.
func (m *modelled) next() int64 {
	var at []int64
	if m.due > 0 {
		at = append(at, m.due)
	}
	at = append(at, m.remind...)
	if !m.open || len(at) == 0 {
		return 0
	}
	return slices.Min(at)
}

// happens is what happens at a time.
func (m *modelled) happens(now int64) protocol.Data {
	switch {
	case !m.open:
		return nil
	case m.due > 0 && m.due <= now && m.raised < len(m.def.Escalate):
		all := map[string]bool{}
		for _, name := range append(slices.Clone(m.people), m.def.Escalate[m.raised]...) {
			all[name] = true
		}
		m.people = nil
		for _, name := range []string{"anna", "ben", "carla", "dora"} {
			if all[name] {
				m.people = append(m.people, name)
			}
		}
		m.raised++
		m.times(now)
		return protocol.Escalated{N: m.raised, Assignees: m.people, Due: m.due, Remind: m.remind}
	case m.due > 0 && m.due <= now:
		m.open = false
		return protocol.TimerFired{Due: m.due}
	}
	missed := 0
	for len(m.remind) > 0 && m.remind[0] <= now {
		m.remind = m.remind[1:]
		missed++
	}
	if missed == 0 {
		return nil
	}
	m.sent += missed
	return protocol.Reminded{N: m.sent}
}

// What is due of questions, in whatever order time passes, answers come and forms are asked again, is what a model
// says; and so is what a fold and a stored state make of it.
func TestTheTimesOfQuestionsAreThoseOfAModel(t *testing.T) {
	seen := map[protocol.EventType]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, "wf: 1\nname: asks\nroles:\n  a: {ask: A?}\n  b: {ask: B?}\nedges:\n  - {from: START, to: [a, b]}\n  - {from: [a, b], to: END}\n", nil)
		models := map[string]*modelled{}
		for i := range w.s.Program().Workflow.Roles {
			role := &w.s.Program().Workflow.Roles[i]
			role.Asking = rulestest.Asking(rt)
			models[role.Name+"#1"] = &modelled{def: role.Asking}
		}
		now := w.s.TS
		say := func(step string, d protocol.Data) {
			seen[d.EventType()]++
			w.sayAt(now, step, d)
		}
		plan, err := w.s.Next()
		w.must(err)
		for _, d := range plan.Start {
			w.begin(d)
		}
		now = w.s.TS
		steps := []string{"a#1", "b#1"}
		waits := func(step string) {
			m := models[step]
			say(step, protocol.WaitingFor{Kind: protocol.WaitQuestion, Due: m.due, Remind: slices.Clone(m.def.RemindAt(now)), Assignees: m.people})
		}
		for _, step := range steps {
			models[step].ask(now)
			waits(step)
		}
		for range rapid.IntRange(1, 15).Draw(rt, "moments") {
			now += rapid.Int64Range(0, 5).Draw(rt, "passes")
			step := rapid.SampledFrom(steps).Draw(rt, "step")
			m := models[step]
			switch rapid.IntRange(0, 9).Draw(rt, "happens") {
			case 0:
				if m.open {
					say(step, protocol.Answered{By: "test"})
					m.open = false
				}
			default:
				want := m.happens(now)
				got, again := w.s.Due(step, now)
				if diff := gocmp.Diff(want, got); diff != "" || again {
					rt.Fatalf("%s at %d (-model +rules):\n%s", step, now, diff)
				}
				if got != nil {
					say(step, got)
				}
			}
			var order []string
			for _, step := range steps {
				if models[step].next() > 0 {
					order = append(order, step)
				}
			}
			slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(models[a].next(), models[b].next()) })
			plan, err := w.s.Next()
			w.must(err)
			var timers []string
			for _, t := range plan.Timers {
				timers = append(timers, t.Step.String())
				if want := models[t.Step.String()]; t.Wake != want.next() || t.Due != want.due || !slices.Equal(t.Assignees, want.people) {
					rt.Fatalf("%+v, the model has %+v", t, want)
				}
			}
			if !slices.Equal(timers, order) {
				rt.Fatalf("timers %v, the model has %v", timers, order)
			}
		}
		foldsTo(rt, w, rapid.IntRange(1, len(w.journal)).Draw(rt, "snapshot at"), fmt.Sprint(models))
	})
	for _, typ := range []protocol.EventType{protocol.EvReminded, protocol.EvEscalated, protocol.EvTimerFired, protocol.EvAnswered} {
		if seen[typ] == 0 && !testing.Short() {
			t.Errorf("%s never happened: %v", typ, seen)
		}
	}
}
