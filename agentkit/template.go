package agentkit

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/protocol"
	"wf/roles"
)

// Template performs workflow roles. With the context task each visit is a task that a workflow
// carries out: its message is the edge prompt, its final response and summary are
// outputs of the workflow.
//
//	task_started ─► the sub-workflow, its calls and questions ─► task_completed
//
// The final response is the first of the outputs final_response, response and text that is a
// text, else all outputs; the summary is the output summary, else the beginning of the response.
type Template struct {
	Agent Agent           // asks for goals and summaries, where the role's task names a model
	Child roles.Performer // runs the sub-workflow
}

// Perform runs the sub-workflow of a visit.
func (p Template) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	if turn.Role.Context != protocol.ContextTask {
		return p.Child.Perform(ctx, turn, emit)
	}
	t := templateTask{id: turn.Step.String(), message: turn.EdgePrompt, emit: emit}
	if strings.TrimSpace(t.message) == "" {
		t.message = prompt.Fields(turn.Values)
	}
	if err := t.replay(turn.Transcript); err != nil {
		return protocol.Conclusion{}, fmt.Errorf("transcript of %s: %w", turn.Step, err)
	}
	v := p.visit(turn, emit)
	watching, holds := watched(ctx, emit)
	v.holds = holds
	if t.goal == "" {
		goal, events, err := v.startTask(watching, t.message, t.message)
		err = holds.join(err)
		if err == nil {
			err = emit(ctx, events...)
		}
		if t.goal = goal; err != nil {
			return protocol.Conclusion{}, err
		}
	}
	c, err := p.Child.Perform(ctx, turn, t.pass)
	if err != nil {
		return c, err
	}
	done, err := t.end(watching, v, c.Data)
	err = holds.join(err)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	c.Data, err = task.Data(protocol.TaskData{Goal: t.goal, Status: protocol.TaskCompleted, Question: t.question, Summary: done.Summary.S}, c.Data)
	return c, err
}

// visit is what a call for a goal or a summary needs.
func (p Template) visit(turn protocol.Turn, emit roles.Emit) *visit {
	v := &visit{Work: &prompt.Work{}, agent: &p.Agent, turn: &turn, emit: emit, hidden: p.Agent.secrets(turn)}
	v.clean = roles.NewRedactor(v.hidden).String
	return v
}

// templateTask is the task of a visit, as far as it has come.
type templateTask struct {
	id, message    string
	goal, question string
	done           *protocol.TaskDone
	emit           roles.Emit
}

func (t *templateTask) replay(transcript []protocol.Entry) error {
	for i := range transcript {
		e := &transcript[i]
		data, err := e.AnyData()
		if err != nil {
			return err
		}
		switch d := data.(type) {
		case protocol.TaskStarted:
			t.goal = d.Goal
		case protocol.TaskWaitingOn:
			t.question = d.Question.S
		case protocol.TaskDone:
			t.done = &d
		case protocol.AttemptFailed:
			t.done = nil
		}
	}
	return nil
}

// pass hands on what the sub-workflow emits; where it waits, so does the task.
func (t *templateTask) pass(ctx context.Context, data ...protocol.Data) error {
	for i, d := range data {
		w, ok := d.(protocol.WaitingFor)
		if !ok {
			continue
		}
		t.question = w.Question.S
		waits := protocol.TaskWaitingOn{ID: t.id, Question: w.Question}
		return t.emit(ctx, append(append(append([]protocol.Data{}, data[:i]...), waits), data[i:]...)...)
	}
	return t.emit(ctx, data...)
}

// end completes the task by the outputs of the workflow.
func (t *templateTask) end(ctx context.Context, v *visit, outputs protocol.JSON) (protocol.TaskDone, error) {
	if t.done != nil {
		return *t.done, nil
	}
	response, summary, err := prompt.Outcome(outputs)
	if err != nil {
		return protocol.TaskDone{}, fmt.Errorf("outputs of the sub-workflow of %s: %w", t.id, err)
	}
	spec := v.turn.Role.Task
	done := protocol.TaskDone{ID: t.id, FinalResponse: protocol.NewText(response)}
	var events []protocol.Data
	switch by := task.SummaryBy(spec); {
	case by == protocol.SummaryNone:
		summary = ""
	case by == protocol.SummaryByModel:
		text, usage, why := v.summariseTask(ctx, t.message, response)
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		if events = usage; why == nil {
			summary = text
		} else {
			summary, done.Error = cmp.Or(summary, response), protocol.NewText(v.why(why))
		}
	default:
		summary = cmp.Or(summary, response)
	}
	done.Summary = protocol.NewText(task.LimitWords(summary, task.Words(spec)))
	return done, t.emit(ctx, append(events, done)...)
}
