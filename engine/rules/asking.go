package rules

import (
	"cmp"
	"slices"

	"wf/protocol"
)

// storedAsking is what a snapshot holds of a question that has times or people.
type storedAsking struct {
	Remind    []int64  `cbor:"remind,omitempty"`   // unix µs, ascending
	Reminded  int      `cbor:"reminded,omitempty"` // of those, how many are over
	Before    int      `cbor:"before,omitempty"`   // reminders that the run of a sub-workflow has sent of its question
	Assignees []string `cbor:"assignees,omitempty"`
	Escalated int      `cbor:"escalated,omitempty"` // in this attempt
}

// asked takes over what a question says of times and people. A reminder whose time is over when it is asked
// is one that was sent before: a form is asked again with the times of its first asking.
func (v *visit) asked(d protocol.WaitingFor, ts int64) {
	v.Remind, v.Assignees, v.Reminded, v.Before = d.Remind, d.Assignees, 0, d.Reminded
	for v.Reminded < len(v.Remind) && v.Remind[v.Reminded] <= ts {
		v.Reminded++
	}
}

// wake is when something is due of a visit: of one that waits its next reminder too.
func (v *visit) wake() int64 {
	if v.Mode == Waits && v.Reminded < len(v.Remind) {
		if next := v.Remind[v.Reminded]; v.Due == 0 || next < v.Due {
			return next
		}
	}
	return v.Due
}

// awaits changes when something is due of a visit that waits; one that does so no more is left alone: the
// first of an answer and a timer in the journal counts.
func (s *State) awaits(step string, change func(v *visit)) error {
	v, _, err := s.visitNamed(step)
	if err != nil || v.Mode != Waits {
		return err
	}
	s.list(v, false)
	change(v)
	s.list(v, true)
	return nil
}

// Due is what is due by now, in unix µs, of a visit that waits: a TimerFired, an Escalated or a Reminded, or
// nil. Reminders that were missed are one, and none where the time itself is over. again says that the
// question is that of a sub-workflow, whose run has the timers: it is to go on.
func (s *State) Due(step string, now int64) (d protocol.Data, again bool) {
	v, a, err := s.visitNamed(step)
	if err != nil || v.Mode != Waits || v.wake() == 0 || v.wake() > now {
		return nil, false
	}
	role, ok := s.prog.Workflow.RoleNamed(a.Role)
	switch {
	case ok && role.Action == protocol.ActWorkflow && (v.Waiting != protocol.WaitTimer || v.Due > now):
		return nil, true
	case v.Due == 0 || v.Due > now:
		n := v.Reminded
		for n < len(v.Remind) && v.Remind[n] <= now {
			n++
		}
		return protocol.Reminded{N: n}, false
	case ok && role.Asking != nil && v.Escalated < len(role.Asking.Escalate):
		return escalated(role.Asking, v.Escalated, v.Assignees, now), false
	}
	return protocol.TimerFired{Due: v.Due}, false
}

// escalated puts a question to further people for the n-th time, from 0.
func escalated(a *protocol.Asking, n int, before []string, now int64) protocol.Escalated {
	d := protocol.Escalated{N: n + 1, Due: now + a.Timeout, Remind: a.RemindAt(now)}
	d.Assignees = slices.Concat(before, a.Escalate[n])
	slices.Sort(d.Assignees)
	d.Assignees = slices.Compact(d.Assignees)
	return d
}

// onTimeout is what happens to a question at its due time, "" for any other wait.
func (s *State) onTimeout(v *visit) string {
	role, ok := s.prog.Workflow.RoleNamed(v.of.Role)
	switch {
	case !ok || role.Asking == nil || v.Due == 0:
		return ""
	case v.Escalated < len(role.Asking.Escalate):
		return "escalate"
	}
	return cmp.Or(role.Asking.OnTimeout, "fail")
}
