package engine

import (
	"context"
	"fmt"
	"iter"

	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// assignment is a visit handed to a worker.
type assignment struct {
	turn  protocol.Turn
	begun protocol.StepStarted
	since protocol.Seq // of its first event, where there is a transcript to read; else 0
	by    roles.Performer
	own   *ownVisit // where the visit has a copy of the workspace for itself
	rules string    // format and semantics of the run
	told  bool      // messages from outside were put into its prompt

	preparing *preparation    // of one that was held before its step_started was whole; else nil
	opened    *roles.Handover // what was opened while it was prepared; nil is nothing
}

// assign makes x the turn of a visit, but for what is read from the store.
func (d *driver) assign(ctx context.Context, x *assignment, step string) error {
	turn, err := d.s.Turn(d.run, step) // it reads the edge prompt, which the visit then has
	if err != nil {
		return err
	}
	v, err := d.s.Visit(step)
	if err != nil {
		return err
	}
	*x = assignment{turn: turn, begun: v.Begun}
	x.turn.Confined = d.confines(&x.turn.Role)
	if x.by, err = d.e.performer(turn.Role.Action); err != nil {
		return err
	}
	if !inPlace(x.by) {
		x.turn.Key = rules.StepKey(d.run, &v.Begun)
		if x.turn.Origin != "" && x.turn.Role.Action == protocol.ActWorkflow {
			x.turn.ChildOf = rules.StepKey(x.turn.Origin, &v.Begun)
		}
	}
	if x.turn.Role.Action.ActsOnFiles() {
		x.turn.TraceParent = d.traceParent(ctx, step, v)
	}
	if m, ok := x.by.(merging); ok {
		m.begun = v.Begun
		x.by = m
	}
	if x.turn.Role.Workspace != nil {
		if x.own, err = d.ownVisit(&v); err != nil {
			return err
		}
	}
	if v.Again {
		x.since = v.First
	}
	if o := d.s.Opened(); x.turn.Role.Caching != nil {
		x.rules, x.told = rulesOf(&o.Start), v.Told
	}
	if v.Begun.Preparing {
		if d.preparing[step] == nil { // it was cut off
			if d.preparing[step], err = d.prepare(ctx, turn, v.Begun.Resumes); err != nil {
				return err
			}
		}
		x.preparing = d.preparing[step]
	}
	return nil
}

// fill reads the history and the transcript; it runs in the worker's goroutine.
func (d *driver) fill(ctx context.Context, t *protocol.Turn, begun *protocol.StepStarted, since protocol.Seq) error {
	if since > 0 {
		if err := transcript(d.e.reader(ctx), t, d.e.Store.After(ctx, d.run, since-1)); err != nil {
			return err
		}
	}
	if !t.Role.Action.ActsOnFiles() {
		return nil
	}
	var err error
	t.History, err = d.e.lib.history(d.fresh.before(d.e.reader(ctx)), d.past, begun)
	return err
}

// transcript collects the events of a visit, but those of its files, and of its run those that tell how a process ended,
// long texts in place, and pairs its answers.
func transcript(read Reader, t *protocol.Turn, events iter.Seq2[protocol.Entry, error]) error {
	step := t.Step.String()
	var asked protocol.WaitingFor
	open := false // it waits: of an answer and a timer the first counts
	for e, err := range events {
		ended := e.Step == nil && (e.Type == protocol.EvSuspended || e.Type == protocol.EvResumed)
		if err == nil && (e.StepName() != step && !ended || e.Type == protocol.EvFilesAt) {
			continue
		}
		if err == nil {
			err = inline(read, &e.Event)
		}
		if err != nil {
			return err
		}
		t.Transcript = append(t.Transcript, e)
		d, err := dataOf(&e, protocol.EvWaiting, protocol.EvAnswered, protocol.EvTimerFired, protocol.EvEscalated)
		switch d := d.(type) {
		case protocol.WaitingFor:
			asked, open = d, true
		case protocol.Escalated:
			asked.Due, asked.Remind, asked.Assignees = d.Due, d.Remind, d.Assignees
		case protocol.Answered:
			if open {
				t.Answers = append(t.Answers, protocol.AnswerTo{Waiting: asked, Answer: d, At: e.TS})
			}
			open = false
		case protocol.TimerFired:
			if open {
				t.Answers = append(t.Answers, protocol.AnswerTo{Waiting: asked, Fired: true, At: e.TS})
			}
			open = false
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	return nil
}
