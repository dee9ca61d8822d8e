package engine

import (
	"context"

	"wf/engine/rules"
	"wf/protocol"
)

// Descendants are the runs of the sub-workflows of a run, of theirs, and so on, as far as the
// store has them: in the order of their visits, each before its own descendants.
func (e *Engine) Descendants(ctx context.Context, run protocol.RunID) ([]protocol.RunID, error) {
	var out []protocol.RunID
	seen := map[protocol.RunID]bool{run: true}
	var walk func(protocol.RunID) error
	walk = func(run protocol.RunID) error {
		named, err := e.childrenNamed(ctx, run)
		if err != nil {
			return err
		}
		for _, child := range named {
			if seen[child] {
				continue
			}
			seen[child] = true
			h, err := e.Store.Head(ctx, protocol.RunHead(child))
			if err != nil {
				return err
			}
			if !h.Link.Defined() {
				continue
			}
			out = append(out, child)
			if err := walk(child); err != nil {
				return err
			}
		}
		return nil
	}
	err := walk(run)
	return out, err
}

// childrenNamed are the runs that a journal leads to, whether they are in the store or not: those
// of its own visits, and the runs that supplied model calls to it, which in a fork may be of the
// visits that it shares with another run.
func (e *Engine) childrenNamed(ctx context.Context, run protocol.RunID) ([]protocol.RunID, error) {
	var out []protocol.RunID
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		d, err := dataOf(&x, protocol.EvStepStarted, protocol.EvUsage)
		if err != nil {
			return nil, err
		}
		child, err := e.childNamed(ctx, run, d)
		if err != nil {
			return nil, err
		}
		if child != "" {
			out = append(out, child)
		}
	}
	return out, nil
}

// childNamed is the run of a sub-workflow that the data of an event leads to, "" for none.
func (e *Engine) childNamed(ctx context.Context, run protocol.RunID, d protocol.Data) (protocol.RunID, error) {
	switch d := d.(type) {
	case protocol.StepStarted:
		o, err := e.lib.open(d.Start, e.reader(ctx))
		if err != nil {
			return "", err
		}
		if role, ok := o.Program.Workflow.RoleNamed(d.Role); ok && role.Action == protocol.ActWorkflow {
			return childRun(run, rules.StepKey(run, &d)), nil
		}
	case protocol.Usage:
		if d.Child != nil {
			return d.Child.Run, nil
		}
	}
	return "", nil
}

// CheckAll is Check of a run and of its descendants, added up.
func (e *Engine) CheckAll(ctx context.Context, run protocol.RunID, render Prompter) (*CheckReport, error) {
	sum, err := e.Check(ctx, run, render)
	if err != nil {
		return nil, err
	}
	children, err := e.Descendants(ctx, run)
	if err != nil {
		return nil, err
	}
	sum.Children = len(children)
	for _, child := range children {
		r, err := e.Check(ctx, child, render)
		if err != nil {
			return nil, err
		}
		sum.Events += r.Events
		for _, t := range []struct{ sum, of *Tally }{{&sum.Decisions, &r.Decisions}, {&sum.Prompts, &r.Prompts}, {&sum.Prefixes, &r.Prefixes}, {&sum.Results, &r.Results}} {
			t.sum.Checked, t.sum.Equal = t.sum.Checked+t.of.Checked, t.sum.Equal+t.of.Equal
		}
		for _, f := range r.Findings {
			f.Where = string(child) + ":" + f.Where
			sum.Findings = append(sum.Findings, f)
		}
	}
	return sum, nil
}
