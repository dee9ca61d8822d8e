package engine

import (
	"context"
	"strings"

	"wf/api"
	"wf/protocol"
)

// mends says how a suspended run is put right. That follows from the steps of the live region and
// from the one that was completed last, which a window need not hold.
func (b *viewer) mends(ctx context.Context) error {
	if b.s.Status() != protocol.Suspended {
		return nil
	}
	var err error
	if b.only == nil {
		b.v.Mend, err = b.mend(ctx, b.s, b.last)
		return err
	}
	p := page{first: b.s.Seq, steps: map[string]bool{}}
	for _, a := range b.s.acts {
		for _, v := range a.visits {
			if v != nil {
				p.steps[v.id.String()], p.first = true, min(p.first, v.first)
			}
		}
	}
	live := b.e.viewer(ctx, b.v.ID, b.s, p)
	if err := live.all(ctx); err != nil {
		return err
	}
	last, err := b.e.lastCompleted(ctx, b.v.ID, b.s.Seq)
	if err != nil {
		return err
	}
	b.v.Mend, err = live.mend(ctx, b.s, last)
	return err
}

// lastCompleted is the step that was completed last, up to an event; "" for none.
func (e *Engine) lastCompleted(ctx context.Context, run protocol.RunID, upper protocol.Seq) (last string, err error) {
	for last == "" && upper > 0 {
		lower := max(0, upper-backStep)
		for x, err := range upTo(e.Store.After(ctx, run, lower), upper) {
			if err != nil {
				return "", err
			}
			if x.Type == protocol.EvStepCompleted {
				last = x.StepName()
			}
		}
		upper = lower
	}
	return last, nil
}

// mend finds it for a run that was suspended, nil where the definition is not the cause. last is
// the step that was completed last.
func (b *viewer) mend(ctx context.Context, s *State, last string) (*api.Mend, error) {
	if s.Status() != protocol.Suspended {
		return nil, nil
	}
	behind := &api.Mend{Step: last, After: last != ""}
	switch s.SuspendedBy() {
	case protocol.ByStall:
		return behind, nil
	case protocol.ByError:
	default:
		return nil, nil
	}
	for _, a := range s.acts {
		for _, v := range a.visits {
			if v == nil {
				continue
			}
			if own, err := b.ownMistake(ctx, s, a, v); own || err != nil {
				return &api.Mend{Step: v.id.String()}, err
			}
		}
	}
	if strings.HasPrefix(s.Reason(), outputsFailed) || s.edgeFails() {
		return behind, nil
	}
	return nil, nil
}

// ownMistake reports whether a visit failed by an expression of its role, or the run of its
// sub-workflow by one of that.
func (b *viewer) ownMistake(ctx context.Context, s *State, a *act, v *visit) (bool, error) {
	if v.mode == ended {
		st := b.steps[v.id.String()]
		stuck := a.offer != nil && !a.offer.closed && s.routed(a).dead
		return stuck && v.status == protocol.StepFailed && st != nil && st.Error != nil && st.Error.Phase == phaseExpression, nil
	}
	child := b.steps[v.id.String()]
	if v.mode != parked || child == nil || child.Child == "" {
		return false, nil
	}
	inner, err := b.e.View(ctx, child.Child)
	return err == nil && inner.Mend != nil, err
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
