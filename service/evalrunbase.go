package service

import (
	"context"
	"strings"

	"wf/api"
	"wf/engine/lang"
	"wf/protocol"
)

// Baseline is a run as the baseline of the case that it belongs to: the chosen one, or that with its inputs. The run is
// judged by what the case expects; what a check says of it is not known any more.
func (e *Evaluator) Baseline(ctx context.Context, run protocol.RunID) (*api.Eval, error) {
	v, err := e.Engine.View(ctx, run)
	if err != nil {
		return nil, err
	}
	if !v.Status.Final() && v.Status != protocol.Suspended {
		return nil, protocol.ErrNotFinal.With("wait for it, or name another run", "run %s is not over: nothing can be compared with it", run)
	}
	if name := e.Definition.Program.Workflow.Name; v.Workflow != name {
		return nil, protocol.ErrUsage.With("name a run of the workflow of the suite", "run %s is one of the workflow %s, not of %s", run, v.Workflow, name)
	}
	c, err := e.caseOf(v)
	if err != nil {
		return nil, err
	}
	ended, err := endedOf(v)
	if err != nil {
		return nil, err
	}
	r := api.EvalRun{Run: run, Status: v.Status, Verdict: api.EvalPassed, Wrong: c.Expect.Judge(ended), Steps: v.Count(), ActiveMS: v.ActiveMS, Tokens: tokensOf(v), CostUSD: v.CostUSD, Outputs: v.Outputs}
	out := api.EvalCase{Name: c.Name, Line: c.Line, Verdict: api.EvalPassed, Pass: c.Pass, Rate: api.NewPassRate(1, 1, false), Runs: []api.EvalRun{r}, Tokens: r.Tokens, CostUSD: r.CostUSD}
	if len(r.Wrong) > 0 {
		out.Verdict, out.Runs[0].Verdict, out.Rate = api.EvalFailed, api.EvalFailed, api.NewPassRate(0, 1, false)
		out.Why = strings.Join(r.Wrong, "\n")
	}
	return &api.Eval{Schema: api.EvalSchema, Suite: e.File, Workflow: v.Workflow, Definition: v.Definition, Cases: []api.EvalCase{out}, Complete: true}, nil
}

// caseOf is the case that a run belongs to.
func (e *Evaluator) caseOf(v *api.Run) (*lang.SuiteCase, error) {
	if len(e.Chosen) == 1 {
		return &e.Suite.Cases[e.Chosen[0]], nil
	}
	var found *lang.SuiteCase
	for _, i := range e.Chosen {
		c := &e.Suite.Cases[i]
		inputs, err := e.Definition.Program.Inputs(c.Inputs)
		if err != nil || string(inputs) != string(v.Info.Inputs) {
			continue
		}
		if found != nil {
			return nil, protocol.ErrUsage.With("choose the case with --case", "run %s has the inputs of the cases %q and %q", v.ID, found.Name, c.Name)
		}
		found = c
	}
	if found == nil {
		return nil, protocol.ErrUsage.With("choose the case with --case", "run %s has the inputs of none of the cases", v.ID)
	}
	return found, nil
}
