package engine

import (
	"context"
	"slices"

	"wf/api"
	"wf/engine/rules"
	"wf/protocol"
)

// mends says how a suspended run is put right. That follows from the steps of the live region and
// from the one that was completed last, which a window need not hold.
func (b *viewer) mends(ctx context.Context) error {
	if b.s.Status() != protocol.Suspended {
		return nil
	}
	if b.only == nil {
		mend, err := b.mend(ctx, b.last)
		b.v.Mend = mend
		return err
	}
	p := page{first: b.s.Seq, steps: map[string]bool{}}
	for v := range b.s.Visits() {
		p.steps[v.Step.String()], p.first = true, min(p.first, v.First)
	}
	live, err := b.e.viewer(ctx, b.v.ID, b.s, p, false)
	if err != nil {
		return err
	}
	last, err := b.e.lastCompleted(ctx, b.v.ID, b.s.Seq)
	if err != nil {
		return err
	}
	b.v.Mend, err = live.mend(ctx, last)
	return err
}

// lastCompleted is the step that was completed last, up to an event; "" for none.
func (e *Engine) lastCompleted(ctx context.Context, run protocol.RunID, upper protocol.Seq) (string, error) {
	for ; upper > 0; upper -= backStep {
		part, err := e.before(ctx, run, upper)
		if err != nil {
			return "", err
		}
		for _, x := range slices.Backward(part) {
			if x.Type == protocol.EvStepCompleted {
				return x.StepName(), nil
			}
		}
	}
	return "", nil
}

// mend finds it for a run that was suspended, nil where the definition is not the cause. last is
// the step that was completed last.
func (b *viewer) mend(ctx context.Context, last string) (*api.Mend, error) {
	at, after, ok, err := b.s.Mend(func(v rules.Visit) (bool, error) {
		st := b.steps[v.Step.String()]
		switch {
		case st == nil:
			return false, nil
		case v.Mode == rules.Ended:
			return st.Error != nil && st.Error.Phase == phaseExpression, nil
		case st.Child == "":
			return false, nil
		}
		inner, err := b.e.View(ctx, st.Child)
		return err == nil && inner.Mend != nil, err
	})
	switch {
	case err != nil || !ok:
		return nil, err
	case after:
		return &api.Mend{Step: last, After: last != ""}, nil
	}
	return &api.Mend{Step: at}, nil
}
