package rules

import (
	"strings"

	"wf/protocol"
)

// Mend says where a suspended run goes on under an edited definition: behind the step that was completed
// last, named by after, or at a step that failed by a mistake in the definition. ok is false where the
// definition is not the cause. mistaken reports whether that is why a visit failed, and is asked of those
// alone that failed for good and that nothing goes on from, and of those that are parked; its error
// is returned.
func (s *State) Mend(mistaken func(Visit) (bool, error)) (at string, after, ok bool, err error) {
	switch {
	case s.Status() != protocol.Suspended:
		return "", false, false, nil
	case s.SuspendedBy() == protocol.ByStall:
		return "", true, true, nil
	case s.SuspendedBy() != protocol.ByError:
		return "", false, false, nil
	}
	for _, a := range s.acts {
		for _, v := range a.visits {
			if v == nil || !s.stuck(a, v) {
				continue
			}
			if own, err := mistaken(s.seen(v)); own || err != nil {
				return v.id().String(), false, true, err
			}
		}
	}
	behind := strings.HasPrefix(s.Reason(), outputsFailed) || s.edgeFails()
	return "", behind, behind, nil
}

// stuck reports whether a visit keeps the run from going on.
func (s *State) stuck(a *act, v *visit) bool {
	if v.Mode != Ended {
		return v.Mode == Parked
	}
	return v.Status == protocol.StepFailed && a.offer != nil && !a.offer.closed && s.routed(a).dead
}

// edgeFails reports whether an expression of an edge has no value for a token that waits there.
func (s *State) edgeFails() bool {
	for _, a := range s.agenda.tokens {
		if s.routed(a).err != nil {
			return true
		}
	}
	for _, f := range s.firings() {
		if f.err != nil {
			return true
		}
		for _, t := range f.targets {
			if t.done || t.node == protocol.NodeEnd || t.node == protocol.NodeSuspend || t.node == protocol.NodeFail {
				continue
			}
			if _, err := s.dispatch(f, t, map[string]int{}, 1); err != nil {
				return true
			}
		}
	}
	return false
}
