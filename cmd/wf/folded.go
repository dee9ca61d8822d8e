package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// folded reads the newest steps of a run for a person, w.Limit lines of them: a long fan-out is one line, of all of its
// items, unless steps are chosen by their states or role.
func (a *app) folded(ctx context.Context, p *target, run protocol.RunID, w api.Window) (*api.Run, map[string]*render.FanOut, error) {
	folds := !a.AsJSON() && !a.All && !w.Chooses()
	if folds {
		w.Fold = render.FoldFrom
	}
	v, err := p.Run(ctx, run, w)
	if err != nil || !folds {
		return v, nil, err
	}
	if v.Earlier == 0 {
		v.Total = 0 // all of them are shown, though not on lines of their own
	}
	fans := map[string]*render.FanOut{}
	for i := range v.Fans {
		tally := &v.Fans[i]
		items := slices.Collect(func(yield func(*api.Step) bool) {
			for _, s := range v.Steps {
				if render.FanOf(s) == tally.ID && !yield(s) {
					return
				}
			}
		})
		if len(items) > 0 && render.Folds(tally) {
			fans[tally.ID] = &render.FanOut{Items: items, Of: tally.Items, Tally: tally, Idle: v.Idle}
		}
	}
	return v, fans, a.measure(ctx, p, v, fans)
}

// fanOut reads the items of a fan-out, where a name that is none of a step is the one that they share. Else it is the error.
func (a *app) fanOut(ctx context.Context, p *target, at api.Ref, unknown error) (*api.Run, map[string]*render.FanOut, error) {
	if a.AsJSON() || !errors.Is(unknown, protocol.ErrUnknownStep) {
		return nil, nil, unknown
	}
	id, err := protocol.ParseStepID(at.Step)
	if err != nil || id.Index >= 0 {
		return nil, nil, unknown
	}
	v, err := p.Run(ctx, at.Run, api.Window{Role: id.Role})
	if err != nil {
		return nil, nil, err
	}
	v.Steps = slices.DeleteFunc(v.Steps, func(s *api.Step) bool { return render.FanOf(s) != at.Step })
	if len(v.Steps) == 0 {
		return nil, nil, unknown
	}
	render.AtRest(v)
	fans := a.Fans(v.Steps)
	return v, fans, a.measure(ctx, p, v, fans)
}

// measure adds to fan-outs what their steps do not say: the number of their items, their time and their cost.
func (a *app) measure(ctx context.Context, p *target, v *api.Run, fans map[string]*render.FanOut) error {
	called := false
	for _, fan := range fans {
		last, open := protocol.Seq(0), false
		for _, s := range fan.Items {
			last, open, called = max(last, s.Ended), open || s.Ended == 0, called || s.Usage.Calls > 0 || s.Action == protocol.ActPrompt && fan.Tally != nil
		}
		if fan.Tally != nil {
			last, open = fan.Tally.Ended, fan.Open()
		}
		first, err := api.EventOf(ctx, p, v.ID, fan.Items[0].Began)
		if err != nil {
			return err
		}
		if d, ok := first.Data.(protocol.StepStarted); ok {
			fan.Of = d.Of
		}
		end, err := time.Parse(time.RFC3339, v.Updated)
		if !open {
			var x api.Update
			if x, err = api.EventOf(ctx, p, v.ID, last); err == nil {
				end = x.Entry.Time()
			}
		}
		if err != nil {
			return err
		}
		fan.Span = end.Sub(first.Entry.Time())
	}
	if !called {
		return nil
	}
	cost, err := p.Cost(ctx, v.ID, "step")
	if err != nil {
		return err
	}
	for name, fan := range fans {
		fan.Cost = render.CostOf(cost.Items, func(r *api.CostRow) bool { return render.FanOf(&api.Step{ID: r.Name}) == name })
	}
	return nil
}
