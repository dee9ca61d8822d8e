package query

import (
	"context"
	"fmt"
	"slices"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// Explain decides again how a visit came about.
func Explain(ctx context.Context, e *engine.Engine, run protocol.RunID, step string) (*api.Explanation, error) {
	v, err := e.ViewStep(ctx, run, step)
	if err != nil {
		return nil, err
	}
	st, err := StepOf(v, step)
	if err != nil {
		return nil, err
	}
	w, err := e.Explain(ctx, run, step)
	if err != nil {
		return nil, err
	}
	out := &api.Explanation{
		Schema: "wf.explain/v1", Run: run, Step: w.Step, Edge: w.Edge, Via: w.Via, EdgePrompt: w.EdgePrompt,
		Parents: []string{}, Tried: []api.Tried{}, Bounds: []api.Bound{}, Cache: st.Reuse,
	}
	for _, l := range w.Parents {
		out.Parents = append(out.Parents, l.String())
	}
	for _, t := range w.Tried {
		tried := api.Tried{Edge: t.Edge, From: t.From, To: t.To, When: t.When, Holds: t.Holds, Taken: t.Taken, Join: t.Join, OnLimit: t.Diverted, Terms: []api.Term{}}
		if t.Err != nil {
			tried.Error = t.Err.Error()
		}
		for _, term := range t.Terms {
			shown := api.Term{Source: term.Source, Value: term.Value}
			if term.Err != nil {
				shown.Error = term.Err.Error()
			}
			tried.Terms = append(tried.Terms, shown)
		}
		out.Tried = append(out.Tried, tried)
	}
	for _, b := range w.Bounds {
		out.Bounds = append(out.Bounds, api.Bound(b))
	}
	return out, nil
}

// StepOf finds a visit of a run.
func StepOf(v *api.Run, id string) (*api.Step, error) {
	for _, s := range v.Steps {
		if s.ID == id {
			return s, nil
		}
	}
	return nil, NoStep(v.ID, id, slices.ContainsFunc(v.Steps, func(s *api.Step) bool { return s.ID == protocol.FirstItem(id) }))
}

// NoStep is the error of a name that is no step; it may be that of a fan-out.
func NoStep(run protocol.RunID, name string, fan bool) error {
	if fan {
		return protocol.ErrUnknownStep.With(fmt.Sprintf("name an item, such as %s:%s", run, protocol.FirstItem(name)), "%s of run %s is a fan-out", name, run)
	}
	return protocol.ErrUnknownStep.With("wf show "+string(run)+" lists the steps", "run %s has no step %s", run, name)
}
