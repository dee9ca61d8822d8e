package agentkit

import (
	"context"
	"fmt"
	"strings"

	"wf/agentkit/task"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// Bounds of a task.
const (
	DefaultTaskTurns = 100 // replies of the model in one attempt at a task
	maxStops         = 3   // times in a row that the model is asked to go on
)

// taskRun is the task that a visit is, as far as it has come. The live loop and the transcript
// fill it alike.
type taskRun struct {
	goal     string // "" before it is known
	state    string
	question string        // the last one that was asked
	shared   protocol.JSON // by this task so far
	stops    int           // replies in a row without any call
}

// taskTools are the tools that steer a task, for the list that is offered and recorded. None of
// them runs: control carries their calls out.
func taskTools(spec *protocol.TaskSpec) []tool.Tool {
	var out []tool.Tool
	for _, t := range task.Tools(spec) {
		out = append(out, tool.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}

// startTask takes in the goal, and with it P_k.
func (v *visit) startTask(goal string) error {
	v.task.goal, v.turn.History.Goal = goal, goal
	prompt, err := BuildMessages(v.turn.History)
	v.prompt = prompt
	return err
}

// openTask gives the task its goal, once.
func (v *visit) openTask(ctx context.Context) error {
	if v.task == nil || v.task.goal != "" {
		return nil
	}
	original, err := taskOriginal(v.turn.History)
	if err != nil {
		return err
	}
	started := protocol.TaskStarted{ID: v.turn.Step.String(), Original: protocol.NewText(original)}
	goal, usage, why := v.writeGoal(ctx, original)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if started.Goal = goal; why != nil {
		started.Goal = task.GoalFromMessage(v.turn.History.Visit.EdgePrompt)
		if started.Goal == "" {
			started.Goal = task.GoalFromMessage(original)
		}
		started.Error = protocol.NewText(head(v.clean(valid(why.Error())), 500))
	}
	if started.Goal == "" {
		started.Goal = v.turn.Step.String() // the message holds nothing to be read
	}
	events := []protocol.Data{started}
	if usage != nil {
		events = append(events, *usage)
	}
	if err := v.emit(ctx, events...); err != nil {
		return err
	}
	return v.startTask(started.Goal)
}

// control carries out a call by which the model steers its task. Nobody is asked for it.
func (v *visit) control(ctx context.Context, call protocol.CallMessage) error {
	if first := v.controlBefore(call); first != "" {
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

// controlBefore is the task tool that the same reply calls before this one, "" for none.
func (v *visit) controlBefore(call protocol.CallMessage) string {
	for _, c := range v.callsWith(call.ID) {
		if c.ID == call.ID {
			return ""
		}
		if protocol.IsTaskControl(c.Name) {
			return c.Name
		}
	}
	return ""
}

// callsWith are the calls of the reply that holds this one.
func (v *visit) callsWith(id string) []protocol.CallMessage {
	for i := len(v.tail) - 1; i >= 0; i-- {
		for _, c := range v.tail[i].ToolCalls {
			if c.ID == id {
				return v.tail[i].ToolCalls
			}
		}
	}
	return nil
}

// settle journals what a task tool did with its result, in one commit.
func (v *visit) settle(ctx context.Context, call protocol.CallMessage, content string, did protocol.Data) error {
	if err := v.emit(roles.Soon(ctx), did, protocol.ToolResult{Call: call.ID, Content: protocol.NewText(content)}); err != nil {
		return err
	}
	delete(v.raw, call.ID)
	v.result(call.ID, content, false)
	return nil
}

func (v *visit) updateState(ctx context.Context, call protocol.CallMessage) error {
	u, err := task.ParseUpdate(call.Arguments)
	if err != nil {
		return v.refuse(ctx, call, err)
	}
	d := protocol.TaskStateUpdated{ID: v.turn.Step.String(), State: protocol.NewText(u.State)}
	shared, err := task.Merge(v.task.shared, u.Share)
	if err != nil {
		return err
	}
	d.Shared = protocol.NewText(string(shared))
	if err := v.settle(ctx, call, "Saved.", d); err != nil {
		return err
	}
	v.task.updated(d)
	return nil
}

func (t *taskRun) updated(d protocol.TaskStateUpdated) {
	t.state = d.State.S
	if d.Shared.S != "" {
		t.shared = protocol.JSON(d.Shared.S)
	}
}

// waitOnUser parks the visit until the answer is there; then that is the result of the call.
func (v *visit) waitOnUser(ctx context.Context, call protocol.CallMessage) error {
	q, err := task.ParseQuestion(call.Arguments)
	if err != nil {
		return v.refuse(ctx, call, err)
	}
	v.task.question = q.Question
	if a, ok := v.taskAnswer(call.ID); ok {
		text := strings.TrimSpace(a.Text.S)
		if text == "" {
			text = "(no text)"
		}
		return v.answer(ctx, call, tool.Result{Content: "You asked:\n\n" + q.Question + "\n\nThe user answers:\n\n" + text})
	}
	if _, asked := v.asked[call.ID]; !asked {
		err := v.emit(ctx,
			protocol.TaskWaitingOn{ID: v.turn.Step.String(), Question: protocol.NewText(q.Question)},
			protocol.WaitingFor{Kind: protocol.WaitTask, Call: call.ID, Question: protocol.NewText(q.Question)})
		if err != nil {
			return err
		}
		v.asked[call.ID] = ""
	}
	return fmt.Errorf("%s asks the user: %w", v.turn.Step, protocol.ErrWaiting)
}

func (v *visit) taskAnswer(call string) (protocol.Answered, bool) {
	for i := len(v.turn.Answers) - 1; i >= 0; i-- {
		a := &v.turn.Answers[i]
		if a.Waiting.Kind == protocol.WaitTask && a.Waiting.Call == call && !a.Fired {
			return a.Answer, true
		}
	}
	return protocol.Answered{}, false
}

// What the calls of a reply that completes its task give.
const (
	taskEnded  = "The task is complete."
	notRun     = "error: this call was not run: the task was completed before it"
	misfitting = "error: the final_response does not fit the required output:\n\n"
)

// completeTask ends the task. All calls of the reply have their results then.
func (v *visit) completeTask(ctx context.Context, call protocol.CallMessage) error {
	c, err := task.ParseCompletion(call.Arguments, v.turn.Role.Task)
	if err != nil {
		return v.refuse(ctx, call, err)
	}
	if _, violations := v.check(c.FinalResponse); len(violations) > 0 {
		reasons := make([]string, len(violations))
		for i, violation := range violations {
			reasons[i] = "- " + violation.String()
		}
		return v.answer(ctx, call, tool.Result{Content: misfitting + strings.Join(reasons, "\n"), IsError: true})
	}
	shared, err := task.Merge(v.task.shared, c.Share)
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
		if usage != nil {
			events = append(events, *usage)
		}
		if why != nil {
			text = c.FinalResponse
			done.Error = protocol.NewText(head(v.clean(valid(why.Error())), 500))
		}
		done.Summary = protocol.NewText(task.LimitWords(text, task.Words(v.turn.Role.Task)))
	}
	for i, p := range v.pending {
		result := protocol.ToolResult{Call: p.ID, Content: protocol.NewText(notRun), IsError: true}
		if i == 0 {
			result = protocol.ToolResult{Call: p.ID, Content: protocol.NewText(taskEnded)}
		}
		events = append(events, result)
	}
	if err := v.emit(roles.Soon(ctx), append(events, done)...); err != nil {
		return err
	}
	v.pending = nil
	return v.taskDone(done)
}

// taskDone concludes the visit.
func (v *visit) taskDone(d protocol.TaskDone) error {
	text := d.FinalResponse.S
	declared, violations := v.check(text)
	if len(violations) > 0 {
		return fmt.Errorf("the final response of %s: %s: %w", v.turn.Step, violations[0], protocol.ErrCorrupt)
	}
	if v.turn.History.Schema == "" {
		declared = nil
	}
	data, err := task.Data(protocol.TaskData{Goal: v.task.goal, Status: protocol.TaskCompleted, State: v.task.state,
		Question: v.task.question, Summary: d.Summary.S, Shared: protocol.JSON(d.Shared.S)}, declared)
	if err != nil {
		return err
	}
	v.done = &protocol.Conclusion{Text: &text, Data: data}
	return nil
}

// taskResult follows what a result means for the task: after a person's answer the turns count
// anew, and a final response is refused only so often.
func (v *visit) taskResult(call, content string, isError bool) {
	name := ""
	for _, c := range v.callsWith(call) {
		if c.ID == call {
			name = c.Name
		}
	}
	switch {
	case name == protocol.ToolTaskWaitingOnUser && !isError:
		v.turns, v.last = 0, false
	case name == protocol.ToolTaskComplete && isError && strings.HasPrefix(content, misfitting):
		if v.corrections++; v.corrections > maxCorrections {
			v.done = &protocol.Conclusion{}
			v.failure = &protocol.Failure{
				ErrorInfo: protocol.ErrorInfo{Code: "output_invalid", Phase: "output_validation",
					Message: fmt.Sprintf("the final response does not fit after %d corrections: %s", maxCorrections,
						strings.ReplaceAll(strings.TrimPrefix(content, misfitting), "\n", " "))},
				Class: "invalid_output",
			}
		}
	}
}

// stopped takes in a reply that calls no tool: the model is asked to go on, or the run is
// suspended.
func (v *visit) stopped(reply protocol.Message) {
	if strings.TrimSpace(reply.Content) == "" {
		reply.Content = "(no text)" // providers refuse empty messages
	}
	v.tail = append(v.tail, reply)
	if v.task.stops++; v.task.stops <= maxStops {
		v.nudge()
		return
	}
	v.done = &protocol.Conclusion{}
	v.failure = &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "task_stopped", Phase: "task", Message: fmt.Sprintf(
			"the model stopped and was asked %d times to go on, but called none of %s, %s and %s; wf resume asks again",
			maxStops, protocol.ToolTaskComplete, protocol.ToolTaskWaitingOnUser, protocol.ToolTaskUpdateState)},
		Class: "task_stopped", Suspend: true,
	}
}

func (v *visit) nudge() {
	v.tail = append(v.tail, protocol.Message{Role: protocol.RoleUser, Content: task.NudgeText()})
}

// unsuspend goes on with a task after the run was suspended because the model had stopped.
func (v *visit) unsuspend() {
	if v.task == nil || v.failure == nil || !v.failure.Suspend {
		return
	}
	v.done, v.failure, v.task.stops = nil, nil, 0
	v.nudge()
}

// steers reports whether a reply may come after the turns are over: it ends or parks the task.
func (v *visit) steers(reply protocol.Message) bool {
	if v.task == nil {
		return false
	}
	for _, c := range reply.ToolCalls {
		if c.Name != protocol.ToolTaskComplete && c.Name != protocol.ToolTaskWaitingOnUser {
			return false
		}
	}
	return true
}

// remind puts goal and state at the end of the newest message. They stay there: what was sent
// once is never changed, so that the next request begins with all of this one.
func (v *visit) remind() {
	if v.task == nil || len(v.tail) == 0 {
		return
	}
	last, block := &v.tail[len(v.tail)-1], task.Block(v.task.goal, v.task.state)
	if last.Role != protocol.RoleAssistant && !strings.HasSuffix(last.Content, block) {
		last.Content += "\n\n" + block
	}
}
