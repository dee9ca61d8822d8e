package agentkit

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// taskTools are the tools that steer a task, for the list that is offered and recorded. None of
// them runs: control carries their calls out.
func taskTools(spec *protocol.TaskSpec) []tool.Tool {
	var out []tool.Tool
	for _, t := range task.Tools(spec) {
		out = append(out, tool.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}

// openTask gives the task its goal, once.
func (v *visit) openTask(ctx context.Context) error {
	if v.Task == nil || v.Task.Goal != "" {
		return nil
	}
	original, err := prompt.Original(v.turn.History)
	if err != nil {
		return err
	}
	_, events, err := v.startTask(ctx, original, v.turn.History.Visit.EdgePrompt, original)
	if err != nil {
		return err
	}
	return v.journal(ctx, events...)
}

// startTask is what is journaled when a task begins. Without a goal that a model writes it takes the
// beginning of the first of the texts that says something, or else its step.
func (v *visit) startTask(ctx context.Context, original string, texts ...string) (goal string, events []protocol.Data, err error) {
	started := protocol.TaskStarted{ID: v.turn.Step.String(), Original: protocol.NewText(original)}
	goal, usage, why := v.writeGoal(ctx, original)
	if ctx.Err() != nil {
		return "", nil, ctx.Err()
	}
	if why != nil && (v.Task != nil || v.taskModel() != "") {
		started.Error = protocol.NewText(v.why(why))
	}
	for _, text := range texts {
		goal = cmp.Or(goal, task.GoalFromMessage(text))
	}
	started.Goal = cmp.Or(goal, started.ID)
	return started.Goal, append([]protocol.Data{started}, usage...), nil
}

// control carries out a call by which the model steers its task. No person is asked for it.
func (v *visit) control(ctx context.Context, call protocol.CallMessage) error {
	if first := v.Steered(call.ID); first != "" {
		return v.refuse(ctx, call, fmt.Errorf("%s was called in the same reply: call one of the task tools in a reply, then see its result", first))
	}
	switch call.Name {
	case protocol.ToolTaskUpdateState:
		return v.updateState(ctx, call)
	case protocol.ToolTaskWaitingOnUser:
		return v.waitOnUser(ctx, call)
	}
	return v.completeTask(ctx, call)
}

// refuse tells the model what is wrong with a call.
func (v *visit) refuse(ctx context.Context, call protocol.CallMessage, why error) error {
	return v.answer(ctx, call, tool.Result{Content: "error: " + why.Error(), IsError: true})
}

// updateState journals what the agent noted with the result of the call, in one commit.
func (v *visit) updateState(ctx context.Context, call protocol.CallMessage) error {
	u, err := task.ParseUpdate(call.Arguments)
	if err != nil {
		return v.refuse(ctx, call, err)
	}
	shared, err := task.Merge(v.Task.Shared, u.Share)
	if err != nil {
		return err
	}
	delete(v.raw, call.ID)
	return v.journal(roles.Soon(ctx),
		protocol.TaskStateUpdated{ID: v.turn.Step.String(), State: protocol.NewText(u.State), Shared: protocol.NewText(string(shared))},
		protocol.ToolResult{Call: call.ID, Content: protocol.NewText("Saved.")})
}

// waitOnUser parks the visit until the answer is there; then that is the result of the call.
func (v *visit) waitOnUser(ctx context.Context, call protocol.CallMessage) error {
	q, err := task.ParseQuestion(call.Arguments)
	if err != nil {
		return v.refuse(ctx, call, err)
	}
	if a, ok := v.newestAnswer(protocol.WaitTask, call.ID); ok {
		text := cmp.Or(strings.TrimSpace(a.Answer.Text.S), "(no text)")
		return v.answer(ctx, call, tool.Result{Content: "You asked:\n\n" + q.Question + "\n\nThe user answers:\n\n" + text})
	}
	if _, asked := v.asked[call.ID]; !asked {
		err := v.journal(ctx,
			protocol.TaskWaitingOn{ID: v.turn.Step.String(), Question: protocol.NewText(q.Question)},
			protocol.WaitingFor{Kind: protocol.WaitTask, Call: call.ID, Question: protocol.NewText(q.Question)})
		if err != nil {
			return err
		}
		v.asked[call.ID] = ""
	}
	return fmt.Errorf("%s asks the user: %w", v.turn.Step, protocol.ErrWaiting)
}

// completeTask ends the task. All calls of the reply have their results then.
func (v *visit) completeTask(ctx context.Context, call protocol.CallMessage) error {
	c, err := task.ParseCompletion(call.Arguments, v.turn.Role.Task)
	if err != nil {
		return v.refuse(ctx, call, err)
	}
	if misfit := v.Misfit(c.FinalResponse); misfit != "" {
		return v.answer(ctx, call, tool.Result{Content: misfit, IsError: true})
	}
	shared, err := task.Merge(v.Task.Shared, c.Share)
	if err != nil {
		return err
	}
	done := protocol.TaskDone{ID: v.turn.Step.String(), FinalResponse: protocol.NewText(c.FinalResponse),
		Summary: protocol.NewText(c.Summary), Shared: protocol.NewText(string(shared))}
	var events []protocol.Data
	if task.SummaryBy(v.turn.Role.Task) == protocol.SummaryByModel {
		text, usage, why := v.writeTaskSummary(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		events = usage
		if why != nil {
			text = c.FinalResponse
			done.Error = protocol.NewText(v.why(why))
		}
		done.Summary = protocol.NewText(task.LimitWords(text, task.Words(v.turn.Role.Task)))
	}
	for _, result := range v.Ended() {
		events = append(events, result)
	}
	return v.journal(roles.Soon(ctx), append(events, done)...)
}
