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

// moved takes in what changes the messages of a visit under way: a compaction gives it another
// conversation to go on with, a fork another definition.
func moved(d *protocol.StepStarted, e *protocol.Event) error {
	switch e.Type {
	case protocol.EvStepStarted:
		again, err := cas.DecodeData[protocol.StepStarted](e)
		if err == nil {
			goOn(d, again)
		}
		return err
	case protocol.EvCompacted:
		c, err := cas.DecodeData[protocol.Compacted](e)
		if err == nil && c.Scope == protocol.ScopeConversation {
			d.Resumes = c.Record
		}
		return err
	}
	return nil
}

// goOn takes over what a further step_started of a visit changes: all under the definition of a
// fork, else the messages that came while it was interrupted.
func goOn(d *protocol.StepStarted, again protocol.StepStarted) {
	switch {
	case again.Start != d.Start:
		*d = again
	case again.Messages > 0:
		d.Inject = again.Inject
	}
}

// goalOf is the goal that an event gives to a task, "" for any other event.
func goalOf(e *protocol.Event) (string, error) {
	if e.Type != protocol.EvTaskStarted {
		return "", nil
	}
	d, err := cas.DecodeData[protocol.TaskStarted](e)
	return d.Goal, err
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

// Take goes on with the next event.
func (h *Histories) Take(x *protocol.Entry) error {
	step := x.StepName()
	s := h.open[step]
	if s == nil {
		if x.Type != protocol.EvStepStarted {
			return nil
		}
		d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
		if err == nil {
			h.open[step] = &begunStep{started: d}
		}
		return err
	}
	err := moved(&s.started, &x.Event)
	if err == nil && s.goal == "" {
		s.goal, err = goalOf(&x.Event)
	}
	return err
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
