package query

import (
	"context"
	"fmt"
	"slices"

	"wf/api"
	"wf/engine"
	"wf/engine/rules"
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
		Parents: []string{}, Cache: st.Reuse,
	}
	for _, l := range w.Parents {
		out.Parents = append(out.Parents, l.String())
	}
	out.Tried, out.Bounds = triedOf(w.Tried), boundsOf(w.Bounds)
	return out, nil
}

// openMost bounds the open steps that an explanation of a run names.
const openMost = 100

// ExplainRun decides again why a run ended, or is where it is.
func ExplainRun(ctx context.Context, e *engine.Engine, run protocol.RunID) (*api.RunExplanation, error) {
	v, err := e.ViewWindow(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return nil, err
	}
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	routings, of, err := s.Routings()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	out := &api.RunExplanation{
		Schema: "wf.explain_run/v1", Run: run, Status: v.Status, Closing: v.Closing, Reason: v.Reason, Suspended: v.Suspended, Cause: v.Cause,
		Open: []api.OpenStep{}, Lacking: append([]string{}, s.Lacking()...), Routings: []api.Routing{}, RoutingsTotal: of,
	}
	for x := range s.Visits() {
		if x.Mode != rules.Ended && len(out.Open) < openMost {
			out.Open = append(out.Open, api.OpenStep{Step: x.Step.String(), Status: s.Shown(x.Mode, x.Begun.Via), Error: x.Error})
		}
	}
	for _, r := range routings {
		out.Routings = append(out.Routings, api.Routing{From: r.From, Failed: r.Failed, At: append([]string{}, r.At...), Tried: triedOf(r.Tried), Bounds: boundsOf(r.Bounds)})
	}
	way := ""
	switch {
	case v.Cause != nil:
		way = v.Cause.Way
		out.Child, err = childOf(ctx, e, run, v.Cause.Step)
	case len(out.Open) > 0:
		way = out.Open[0].Step
	}
	if err == nil && way != "" {
		out.Way, err = Explain(ctx, e, run, way)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// childOf is the run of the sub-workflow that a step performed, "" for none.
func childOf(ctx context.Context, e *engine.Engine, run protocol.RunID, step string) (protocol.RunID, error) {
	v, err := e.ViewStep(ctx, run, step)
	if err != nil {
		return "", err
	}
	st, err := StepOf(v, step)
	if err != nil {
		return "", err
	}
	return st.Child, nil
}

func triedOf(list []rules.Tried) []api.Tried {
	out := []api.Tried{}
	for _, t := range list {
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
		out = append(out, tried)
	}
	return out
}

func boundsOf(list []rules.Bound) []api.Bound {
	out := []api.Bound{}
	for _, b := range list {
		out = append(out, api.Bound(b))
	}
	return out
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
