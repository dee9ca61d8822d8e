package engine

import (
	"context"
	"fmt"
	"slices"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// history is what the messages of a visit are built from: its step_started, the pinned
// definition, and its ancestors. The same whether the visit is about to begin, runs, or ended
// years ago. The edge prompt of d is read where it was not yet.
func (lib *library) history(read Reader, past *pastCache, d *protocol.StepStarted) (protocol.History, error) {
	h := protocol.History{Role: d.Role}
	o, err := lib.open(d.Start, read)
	if err != nil {
		return h, err
	}
	role, ok := o.Program.Workflow.RoleNamed(d.Role)
	if !ok {
		return h, fmt.Errorf("the definition has no role %q: %w", d.Role, protocol.ErrCorrupt)
	}
	h.Format, h.Schema, h.Inputs = o.Start.Format, role.Output, o.Raw
	h.Summaries = protocol.DefaultTaskSummaries
	if t := role.Task; t != nil && t.Summaries != nil {
		h.Summaries = *t.Summaries
	}
	if h.System, err = o.Program.System(d.Role, o.Inputs); err != nil {
		return h, err
	}
	if d.EdgePrompt.S, err = textOf(read, d.EdgePrompt); err != nil {
		return h, err
	}
	begun := rules.RecordOf(d)
	h.Visit = pastOf(o, &begun)
	if h.Tools, err = textOf(read, protocol.Text{Link: d.Tools}); err != nil {
		return h, err
	}
	if h.Visit.Inject, err = textOf(read, protocol.Text{Link: d.Inject}); err != nil {
		return h, err
	}
	h.Records, err = past.ancestors(lib, read, h.Visit)
	return h, err
}

// Histories gives what the messages of the steps of a run are built from, as a journal goes by: a
// record is read once for all of them. It is for one goroutine.
type Histories struct {
	lib  *library
	read Reader
	past pastCache
	open map[string]*begunStep
}

// begunStep is a step as far as the journal was read.
type begunStep struct {
	started protocol.StepStarted
	goal    string
}

// Histories begins before the first event of a run.
func (e *Engine) Histories(ctx context.Context) *Histories {
	return &Histories{lib: &e.lib, read: e.reader(ctx), open: map[string]*begunStep{}}
}

// Take goes on with the next event: what begins a step, and what changes its messages while it is under way.
// A compaction gives it another conversation to go on with, a fork another definition.
func (h *Histories) Take(x *protocol.Entry) error {
	s := h.open[x.StepName()]
	if s == nil && x.Type != protocol.EvStepStarted {
		return nil
	}
	switch x.Type {
	case protocol.EvStepStarted:
		d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
		switch {
		case err != nil:
			return err
		case s == nil:
			h.open[x.StepName()] = &begunStep{started: d}
		case d.Start != s.started.Start:
			s.started = d
		case s.started.Preparing: // it was held before these were there
			s.started.Tools, s.started.Inject, s.started.Preparing = d.Tools, d.Inject, d.Preparing
		case d.Messages > 0: // they came while it was interrupted
			s.started.Inject = d.Inject
		}
	case protocol.EvCompacted:
		d, err := cas.DecodeData[protocol.Compacted](&x.Event)
		if err == nil && d.Scope == protocol.ScopeConversation {
			s.started.Resumes = d.Record
		}
		return err
	case protocol.EvTaskStarted:
		d, err := cas.DecodeData[protocol.TaskStarted](&x.Event)
		if s.goal == "" {
			s.goal = d.Goal
		}
		return err
	}
	return nil
}

// Of is the history of a step as it stands after the last event taken: before a compaction in the
// middle of the visit, the one without it. A step that has not begun is an error wrapping
// ErrNotFound.
func (h *Histories) Of(step string) (protocol.History, error) {
	s := h.open[step]
	if s == nil {
		return protocol.History{}, fmt.Errorf("there is no step %s: %w", step, protocol.ErrNotFound)
	}
	out, err := h.lib.history(h.read, &h.past, &s.started)
	out.Goal = s.goal
	return out, err
}

// HistoriesOf are what the messages of some steps are built from, for wf messages and for checks. The
// journal, and each record, is read once for all.
func (e *Engine) HistoriesOf(ctx context.Context, run protocol.RunID, steps ...string) ([]protocol.History, error) {
	h := e.Histories(ctx)
	for x, err := range e.Store.After(ctx, run, 0) {
		if err == nil && slices.Contains(steps, x.StepName()) {
			err = h.Take(&x)
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]protocol.History, len(steps))
	for i, step := range steps {
		var err error
		if out[i], err = h.Of(step); err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	return out, nil
}

// started finds the first step_started of a step.
func (e *Engine) started(ctx context.Context, run protocol.RunID, step string) (protocol.Seq, protocol.StepStarted, error) {
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return 0, protocol.StepStarted{}, err
		}
		if x.Type == protocol.EvStepStarted && x.StepName() == step {
			d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
			return x.Seq, d, err
		}
	}
	return 0, protocol.StepStarted{}, fmt.Errorf("run %s has no step %s: %w", run, step, protocol.ErrNotFound)
}

// Explain decides again how a step came about.
func (e *Engine) Explain(ctx context.Context, run protocol.RunID, step string) (*rules.Why, error) {
	seq, d, err := e.started(ctx, run, step)
	if err != nil {
		return nil, err
	}
	s, err := e.stateAt(ctx, run, seq-1)
	if err != nil {
		return nil, err
	}
	return s.Explain(step, d)
}
