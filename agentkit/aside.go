package agentkit

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"wf/agentkit/model"
	"wf/agentkit/task"
	"wf/protocol"
)

// goalFrom is how many runes of a message the model reads to name its goal.
const goalFrom = 8_000

// aside is a model call beside the turns of a visit: nothing of it is shown as it grows.
type aside struct {
	kind     string // of the usage
	model    string
	messages []protocol.Message
	offer    []protocol.Tool
	request  model.Request
}

// asideModel names the model for goals and summaries, "" where the visit has none.
func (v *visit) asideModel() string {
	if t := v.turn.Role.Task; t != nil && t.Model != "" {
		return t.Model
	}
	if v.model < len(v.models) {
		return v.models[v.model]
	}
	return ""
}

// writeGoal asks for the goal of the task. usage is of the call, nil where nothing was asked.
func (v *visit) writeGoal(ctx context.Context, original string) (goal string, usage *protocol.Usage, err error) {
	a := aside{kind: protocol.UsageGoal, model: v.asideModel(), messages: []protocol.Message{
		{Role: protocol.RoleSystem, Content: task.GoalPrompt()},
		{Role: protocol.RoleUser, Content: head(original, goalFrom)},
	}}
	a.request = v.describe(a.messages)
	a.request.Goal, a.request.CacheKey = true, ""
	text, usage, err := v.callAside(ctx, a)
	if err != nil {
		return "", usage, err
	}
	if goal = task.Goal(text); goal == "" {
		return "", usage, fmt.Errorf("model %s: the goal is empty", a.model)
	}
	return goal, usage, nil
}

// writeTaskSummary asks for the summary of a task whose last pending call completes it, on the
// live prefix.
func (v *visit) writeTaskSummary(ctx context.Context) (string, *protocol.Usage, error) {
	messages := v.request()
	for i, p := range v.pending {
		m := protocol.Message{Role: protocol.RoleTool, ToolCallID: p.ID, Content: notRun, IsError: true}
		if i == 0 {
			m.Content, m.IsError = taskEnded, false
		}
		messages = append(messages, m)
	}
	messages = append(messages, protocol.Message{Role: protocol.RoleUser, Content: task.SummaryText(v.turn.Role.Task)})
	a := aside{kind: protocol.UsageSummary, model: v.asideModel(), messages: messages, offer: v.offer}
	a.request = v.describe(messages)
	a.request.Call, a.request.Summary, a.request.Prompt = v.summaries, true, len(v.prompt)
	text, usage, err := v.callAside(ctx, a)
	if usage != nil {
		v.summaries++
	}
	if err == nil && text == "" {
		err = fmt.Errorf("model %s: the summary is empty", a.model)
	}
	return text, usage, err
}

// summariseTask asks for the summary of a task that a workflow carried out.
func (v *visit) summariseTask(ctx context.Context, message, response string) (string, *protocol.Usage, error) {
	a := aside{kind: protocol.UsageSummary, model: v.asideModel(), messages: []protocol.Message{
		{Role: protocol.RoleUser, Content: "A task was set by this message:\n\n" + quote(head(message, goalFrom)) +
			"\n\nIts final response is:\n\n" + quote(head(response, 2*goalFrom)) + "\n\n" + task.SummaryText(v.turn.Role.Task)},
	}}
	a.request = v.describe(a.messages)
	a.request.Summary, a.request.CacheKey = true, ""
	text, usage, err := v.callAside(ctx, a)
	if err == nil && text == "" {
		err = fmt.Errorf("model %s: the summary is empty", a.model)
	}
	return text, usage, err
}

// callAside makes the call.
func (v *visit) callAside(ctx context.Context, a aside) (text string, usage *protocol.Usage, err error) {
	if a.model == "" {
		return "", nil, fmt.Errorf("the role %s names no model", v.turn.Role.Name)
	}
	m, err := v.agent.open(a.model, filepath.Dir(v.turn.File))
	if err != nil {
		return "", nil, err
	}
	options, err := callOptions(a.offer, v.turn.Role.Params)
	if err != nil {
		return "", nil, err
	}
	watch := newWatch(v.emit, v.hidden) // of its times alone
	r, err := m.GenerateContent(model.WithRequest(ctx, a.request), contents(a.messages), options...)
	if ctx.Err() != nil {
		return "", nil, v.gaveUp(ctx, protocol.Usage{Model: a.model, TotalMS: watch.total(), Kind: a.kind})
	}
	if err == nil && (r == nil || len(r.Choices) == 0) {
		err = &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: the response holds no choice", a.model)}
	}
	if err != nil {
		failed := model.AsError(a.model, err)
		if failed.Class == model.Unavailable { // nothing was asked
			return "", nil, failed
		}
		return "", &protocol.Usage{Model: a.model, TotalMS: watch.total(), Kind: a.kind}, failed
	}
	used := model.UsageOf(r)
	used.Model, used.TotalMS, used.Kind = a.model, watch.total(), a.kind
	if used.Stop, err = model.StopOf(a.model, r); err != nil {
		return "", &used, err
	}
	var said strings.Builder
	for _, c := range r.Choices {
		said.WriteString(c.Content)
	}
	return strings.TrimSpace(v.clean(valid(said.String()))), &used, nil
}
