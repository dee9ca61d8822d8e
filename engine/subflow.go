package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// subflow performs workflow roles: each visit is a run of its own, named from the parent's
// step, so that it is never started twice.
type subflow struct{ e *Engine }

// SubWorkflow performs workflow roles; a performer that adds to it calls it.
func (e *Engine) SubWorkflow() roles.Performer { return subflow{e} }

// childRun is the run of a sub-workflow visit of a run, and has an id of the same length: so a run that is copied to a store with
// longer ids keeps its children.
func childRun(run protocol.RunID, key string) protocol.RunID {
	n := cas.IDLength
	if len(run) >= cas.LongID {
		n = cas.LongID
	}
	return nameFrom("step\x00"+key, n)
}

// Perform begins or goes on with the child, and concludes with its outputs. A child that
// waits makes the visit wait with the same question; the answer is handed down.
func (p subflow) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	child := childRun(turn.Run, turn.Key)
	read := p.e.reader(ctx)
	prog, err := p.e.lib.program(turn.Role.Workflow, read)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	given, err := lang.DecodeObject(turn.Values)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	inputs, err := prog.Inputs(given)
	if err != nil {
		return protocol.Conclusion{}, &protocol.Failure{Err: err, ErrorInfo: protocol.ErrorInfo{Code: "invalid_inputs", Phase: "workflow", Message: err.Error()}}
	}
	var models map[string][]string // of the run's override for every role: it holds here too
	if len(turn.Models) > 0 {
		models = map[string][]string{"": turn.Models}
	}
	var origin protocol.RunID
	if turn.ChildOf != "" {
		origin = childRun(turn.Run, turn.ChildOf)
	}
	_, fresh, err := p.e.Begin(ctx, Launch{Program: prog, Inputs: inputs, Workspace: turn.Workspace, File: turn.File, Models: models, Context: turn.Context, Cache: turn.Cache, Trial: turn.Trial, Origin: origin,
		sources: turn.Sources, run: child, parent: &protocol.ParentRun{Run: turn.Run, Step: turn.Step.String()}})
	if errors.Is(err, protocol.ErrInputs) {
		message := err.Error()
		if hint := protocol.HintOf(err); hint != "" {
			message += ": " + hint
		}
		return protocol.Conclusion{}, &protocol.Failure{Err: err, ErrorInfo: protocol.ErrorInfo{Code: "secret_input", Phase: "workflow", Message: message}}
	}
	if errors.Is(err, protocol.ErrGroupBusy) {
		return protocol.Conclusion{}, &protocol.Failure{Err: err, Detail: err.Error(), ErrorInfo: protocol.ErrorInfo{Code: protocol.ErrGroupBusy.Code, Phase: "workflow",
			Message: "the concurrency group of the sub-workflow is busy"}}
	}
	if err != nil {
		return protocol.Conclusion{}, err
	}
	if !fresh { // its name can be foretold: what is there must be what this user began
		if err := p.e.Own(ctx, child); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	if err := p.handDown(ctx, child, turn); err != nil {
		return protocol.Conclusion{}, err
	}
	calls, err := childCallsOf(child, &turn, emit)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	if err := calls.catchUp(ctx, p.e.Store); err != nil {
		return protocol.Conclusion{}, err
	}
	s, err := p.e.Drive(ctx, child, DriveOptions{By: "run " + string(turn.Run), stored: calls.follow(ctx), held: childHold(ctx, emit)})
	// A visit that was interrupted has made its calls all the same.
	if err := errors.Join(err, calls.catchUp(context.WithoutCancel(ctx), p.e.Store)); err != nil {
		return protocol.Conclusion{}, err
	}
	switch s.Status() {
	case protocol.Done:
		data, err := outputsOf(read, s.Result())
		return protocol.Conclusion{Data: data, Result: s.Result()}, err
	case protocol.Waiting:
		return protocol.Conclusion{}, p.waits(ctx, child, s, emit)
	case protocol.Failed, protocol.Cancelled:
		return protocol.Conclusion{}, unfinished(prog, string(s.Status()), s.Reason())
	}
	if turn.Role.ContinueOnError && stuck(s) {
		detail := fmt.Sprintf("%s; its run %s stays as it is: wf show %s", s.Reason(), child, child)
		return protocol.Conclusion{}, unfinished(prog, "suspended by "+string(s.SuspendedBy()), detail)
	}
	why := &protocol.Error{Code: s.Code(), Message: fmt.Sprintf("its run %s is %s: %s", child, s.Status(), s.Reason())}
	return protocol.Conclusion{}, why
}

// stuck reports whether a child can go on only if a person puts something right: an error, a limit
// of its own, tokens that no edge takes. With continue_on_error that is a failure of the visit. A
// question is none, nor is the end of the process, nor an alarm.
func stuck(s *rules.State) bool {
	switch s.SuspendedBy() {
	case protocol.ByError, protocol.ByLimit, protocol.ByStall:
		return s.Status() == protocol.Suspended && s.Code() != protocol.ErrLeft.Code
	}
	return false
}

// unfinished is the failure of a visit when its child did not end as done. The record says
// which; why, with the names of runs and what was measured, is said in the journal.
func unfinished(prog *lang.Program, end, detail string) *protocol.Failure {
	code, _, _ := strings.Cut(end, " ")
	return &protocol.Failure{Detail: detail, ErrorInfo: protocol.ErrorInfo{Code: "workflow_" + code, Phase: "workflow",
		Message: fmt.Sprintf("sub-workflow %s %s", prog.Workflow.Name, end)}}
}

// outputsOf are the outputs of a Result.
func outputsOf(read Reader, result protocol.Link) (protocol.JSON, error) {
	var r protocol.Result
	if err := decode(read, result, &r); err != nil {
		return nil, err
	}
	if !r.Outputs.Defined() {
		return protocol.JSON("{}"), nil
	}
	return protocol.PayloadBytes(read, r.Outputs)
}

// waits repeats the child's first question, with the times at which something is due of the others: the visit then
// goes on, and so does the child.
func (p subflow) waits(ctx context.Context, child protocol.RunID, s *rules.State, emit roles.Emit) error {
	w := s.Waiting()[0]
	question, err := textOf(p.e.reader(ctx), w.Question)
	if err != nil {
		return err
	}
	form, err := textOf(p.e.reader(ctx), w.Form)
	if err != nil {
		return err
	}
	remind := slices.Clone(w.Remind)
	for _, other := range s.Waiting()[1:] {
		if other.Wake > 0 {
			remind = append(remind, other.Wake)
		}
	}
	slices.Sort(remind)
	err = emit(ctx, protocol.WaitingFor{Kind: w.Kind, Question: protocol.NewText(question), Choices: w.Choices, Form: protocol.NewText(form), Due: w.Due, Shown: w.Shown,
		Remind: slices.Compact(remind), Assignees: w.Assignees, Reminded: w.Reminded, Escalated: w.Escalated})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s of run %s: %w", w.Step, child, protocol.ErrWaiting)
}

// handDown gives the child the newest answer to this visit, once: the answer's source names
// the parent's event.
func (p subflow) handDown(ctx context.Context, child protocol.RunID, turn protocol.Turn) error {
	if len(turn.Answers) == 0 {
		return nil
	}
	last := turn.Answers[len(turn.Answers)-1]
	if last.Fired {
		return nil // the child's own timer fires too
	}
	source := "run " + string(turn.Run)
	for i := len(turn.Transcript) - 1; i >= 0; i-- {
		if turn.Transcript[i].Type == protocol.EvAnswered {
			source += " event " + strconv.FormatInt(int64(turn.Transcript[i].Seq), 10)
			break
		}
	}
	for x, err := range p.e.Store.After(ctx, child, 0) {
		if err != nil {
			return err
		}
		if x.Type != protocol.EvAnswered {
			continue
		}
		if a, err := cas.DecodeData[protocol.Answered](&x.Event); err != nil {
			return err
		} else if a.Source == source {
			return nil
		}
	}
	s, err := p.e.State(ctx, child)
	if err != nil {
		return err
	}
	for _, w := range s.Waiting() {
		question, err := textOf(p.e.reader(ctx), w.Question)
		if err != nil {
			return err
		}
		if w.Kind != last.Waiting.Kind || question != last.Waiting.Question.S || w.Shown != last.Waiting.Shown {
			continue
		}
		_, err = p.e.Answer(ctx, child, Reply{Step: w.Step.String(), Choice: last.Answer.Choice, Text: last.Answer.Text.S,
			Fields: protocol.JSON(last.Answer.Fields.S), By: last.Answer.By, Source: source, Shown: w.Shown, handedDown: true})
		if !errors.Is(err, protocol.ErrNotWaiting) {
			return err
		}
	}
	return nil // it was answered there, and the child asks anew what it asks now
}

// movedChildren are the waiting visits with a sub-workflow that went on while this run was not driven.
func (d *driver) movedChildren(ctx context.Context) ([]string, error) {
	var out []string
	for v := range d.s.Visits() {
		if d.s.Closing != nil || v.Mode != rules.Waits || !isSubflow(d.s, v) {
			continue
		}
		child, err := d.e.State(ctx, childRun(d.run, rules.StepKey(d.run, &v.Begun)))
		switch {
		case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted): // a fork begins a child of its own
		case err != nil:
			return nil, err
		case child.Status() == protocol.Waiting:
			continue
		}
		out = append(out, v.Step.String())
	}
	return out, nil
}

// childrenOf are the runs of the open sub-workflow visits.
func childrenOf(s *rules.State, run protocol.RunID) []protocol.RunID {
	var out []protocol.RunID
	for v := range s.Visits() {
		if v.Mode != rules.Ended && isSubflow(s, v) {
			out = append(out, childRun(run, rules.StepKey(run, &v.Begun)))
		}
	}
	return out
}

func isSubflow(s *rules.State, v rules.Visit) bool {
	role, ok := s.Program().Workflow.RoleNamed(v.Begun.Role)
	return ok && role.Action == protocol.ActWorkflow
}
