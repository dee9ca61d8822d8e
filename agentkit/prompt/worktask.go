package prompt

import (
	"fmt"
	"slices"
	"strings"

	"wf/agentkit/task"
	"wf/protocol"
)

// Task is the task that a visit is, as far as it has come.
type Task struct {
	Goal   string        // "" before it is known
	Shared protocol.JSON // by this task so far: a canonical object, or nil

	state    string
	question string // the last one that was asked
	stops    int    // replies in a row without any call
}

// Steered names the task tool that the reply with a call calls before it, "" for none.
func (w *Work) Steered(call string) string {
	for _, c := range w.callsWith(call) {
		if c.ID == call {
			return ""
		}
		if protocol.IsTaskControl(c.Name) {
			return c.Name
		}
	}
	return ""
}

// callsWith are the calls of the reply that holds this one.
func (w *Work) callsWith(id string) []protocol.CallMessage {
	for i := len(w.tail) - 1; i >= 0; i-- {
		for _, c := range w.tail[i].ToolCalls {
			if c.ID == id {
				return w.tail[i].ToolCalls
			}
		}
	}
	return nil
}

// What the calls of a reply that completes its task give.
const (
	taskEnded  = "The task is complete."
	notRun     = "error: this call was not run: the task was completed before it"
	misfitting = "error: the final_response does not fit the required output:\n\n"
)

// Misfit is the result of a call that would complete the task by a response, where that does not
// fit the role's schema; "" where it fits.
func (w *Work) Misfit(response string) string {
	if _, reasons := w.check(response); len(reasons) > 0 {
		return misfitting + list(reasons)
	}
	return ""
}

// Ended are the results of the pending calls, of which the first completes the task.
func (w *Work) Ended() []protocol.ToolResult {
	out := make([]protocol.ToolResult, len(w.Pending))
	for i, p := range w.Pending {
		out[i] = protocol.ToolResult{Call: p.ID, Content: protocol.NewText(notRun), IsError: true}
		if i == 0 {
			out[i].Content, out[i].IsError = protocol.NewText(taskEnded), false
		}
	}
	return out
}

// complete concludes the visit. The response was checked before it was journaled.
func (w *Work) complete(d protocol.TaskDone) error {
	text := d.FinalResponse.S
	declared, reasons := w.check(text)
	if len(reasons) > 0 {
		return fmt.Errorf("the final response of %s: %s: %w", w.turn.Step, reasons[0], protocol.ErrCorrupt)
	}
	data, err := task.Data(protocol.TaskData{Goal: w.Task.Goal, Status: protocol.TaskCompleted, State: w.Task.state,
		Question: w.Task.question, Summary: d.Summary.S, Shared: protocol.JSON(d.Shared.S)}, declared)
	if err != nil {
		return err
	}
	w.Pending, w.Done = nil, &protocol.Conclusion{Text: &text, Data: data}
	return nil
}

// taskResult follows what a result means for the task: after a person's answer the turns count
// anew, and a final response is refused only so often.
func (w *Work) taskResult(call, content string, isError bool) {
	calls := w.callsWith(call)
	i := slices.IndexFunc(calls, func(c protocol.CallMessage) bool { return c.ID == call })
	switch {
	case i < 0:
	case calls[i].Name == protocol.ToolTaskWaitingOnUser && !isError:
		w.turns, w.last = 0, false
	case calls[i].Name == protocol.ToolTaskComplete && isError && strings.HasPrefix(content, misfitting):
		if w.corrections++; w.corrections > maxCorrections {
			w.Done = &protocol.Conclusion{}
			w.Failure = misfit("final response", strings.ReplaceAll(strings.TrimPrefix(content, misfitting), "\n", " "))
		}
	}
}

// stopped takes in a reply that calls no tool: the model is asked to go on, or the run is
// suspended.
func (w *Work) stopped(reply protocol.Message) {
	w.tail = append(w.tail, nonEmpty(reply))
	if w.Task.stops++; w.Task.stops <= maxStops {
		w.say(task.NudgeText())
		return
	}
	w.Done = &protocol.Conclusion{}
	w.Failure = &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "task_stopped", Phase: "task", Message: fmt.Sprintf(
			"the model stopped and was asked %d times to go on, but called none of %s, %s and %s; wf resume asks again",
			maxStops, protocol.ToolTaskComplete, protocol.ToolTaskWaitingOnUser, protocol.ToolTaskUpdateState)},
		Class: "task_stopped", Suspend: true,
	}
}

// unsuspend goes on with a task after the run was suspended because the model had stopped.
func (w *Work) unsuspend() {
	if w.Task == nil || w.Failure == nil || !w.Failure.Suspend {
		return
	}
	w.Done, w.Failure, w.Task.stops = nil, nil, 0
	w.say(task.NudgeText())
}

// steers reports whether a reply may come after the turns are over: it ends or parks the task.
func (w *Work) steers(reply protocol.Message) bool {
	return w.Task != nil && !slices.ContainsFunc(reply.ToolCalls, func(c protocol.CallMessage) bool {
		return c.Name != protocol.ToolTaskComplete && c.Name != protocol.ToolTaskWaitingOnUser
	})
}

// remind puts goal and state at the end of the newest message. They stay there: what was sent
// once is never changed, so that the next request begins with all of this one.
func (w *Work) remind() {
	if w.Task == nil || len(w.tail) == 0 {
		return
	}
	last, block := &w.tail[len(w.tail)-1], task.Block(w.Task.Goal, w.Task.state)
	if last.Role != protocol.RoleAssistant && !strings.HasSuffix(last.Content, block) {
		last.Content += "\n\n" + block
	}
}
