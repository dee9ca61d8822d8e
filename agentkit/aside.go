package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/protocol"
)

// aside is a model call beside the turns of a visit: nothing of it is shown as it grows.
type aside struct {
	kind     string // of the usage
	model    string
	messages []protocol.Message
	offer    []protocol.Tool
	request  model.Request
}

// summaryModel names the model for compactions and reflections, "" for none.
func (v *visit) summaryModel() string {
	if c := v.turn.Role.Compaction; c != nil && c.Model != "" {
		return c.Model
	}
	return v.Model()
}

// taskModel names the model for goals and summaries of tasks, "" where the visit has none.
func (v *visit) taskModel() string {
	if t := v.turn.Role.Task; t != nil && t.Model != "" {
		return t.Model
	}
	return v.Model()
}

// writeGoal asks for the goal of the task. usage is that of the call, none where nothing was asked.
func (v *visit) writeGoal(ctx context.Context, original string) (goal string, usage []protocol.Data, err error) {
	a := aside{kind: protocol.UsageGoal, model: v.taskModel(), messages: prompt.ForGoal(original)}
	a.request = v.describe(a.messages)
	a.request.Goal, a.request.CacheKey = true, ""
	text, usage, err := v.asideText(ctx, a, "goal")
	if err != nil {
		return "", usage, err
	}
	if goal = task.Goal(text); goal == "" {
		return "", usage, fmt.Errorf("model %s: the goal is empty", a.model)
	}
	return goal, usage, nil
}

// writeTaskSummary asks for the summary of a task when its first pending call completes it.
func (v *visit) writeTaskSummary(ctx context.Context) (string, []protocol.Data, error) {
	return v.writeSummary(ctx, aside{kind: protocol.UsageSummary, model: v.taskModel(), messages: v.ForTaskSummary()}, 0)
}

// writeCompaction asks for the summary that takes the place of an older part.
func (v *visit) writeCompaction(ctx context.Context, name string, cut *prompt.Cut) (string, []protocol.Data, error) {
	if err := v.Fits(name, cut.Ask); err != nil {
		return "", nil, err
	}
	return v.writeSummary(ctx, aside{kind: protocol.UsageCompaction, model: name, messages: cut.Ask}, cut.Runes)
}

// writeSummary makes a call with the same tools and messages in front as the model read before, so
// that they are read from its prefix cache. The summary has about runes at most, or, with 0, what
// the role allows a reply.
func (v *visit) writeSummary(ctx context.Context, a aside, runes int) (string, []protocol.Data, error) {
	params, err := roomFor(v.turn.Role.Params, runes)
	if err != nil {
		return "", nil, err
	}
	a.offer, a.request = v.offer, v.describe(a.messages)
	a.request.Call, a.request.Summary, a.request.Prompt, a.request.Moved = v.summaries, true, len(v.Prompt), v.Moved()
	if len(a.messages) <= len(v.Prompt) { // without the visit's own message: as the visit before
		a.request.Prompt = len(a.messages) - 2
	}
	a.request.Params = protocol.JSON(params)
	text, usage, err := v.asideText(ctx, a, "summary")
	v.summaries += len(usage)
	return text, usage, err
}

// roomFor raises what bounds a reply, where the role sets it for short answers, to what a
// summary of that many runes takes. That is no part of the cached prefix.
func roomFor(params string, runes int) (string, error) {
	var all map[string]json.RawMessage
	if params == "" {
		return "", nil
	}
	if err := json.Unmarshal([]byte(params), &all); err != nil {
		return "", fmt.Errorf("params: %w", err)
	}
	changed := false
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		var n int
		if json.Unmarshal(all[name], &n) == nil && n < runes/2 {
			all[name], changed = json.RawMessage(strconv.Itoa(runes/2)), true
		}
	}
	if !changed {
		return params, nil
	}
	b, err := protocol.CanonicalJSON(all)
	return string(b), err
}

// summariseTask asks for the summary of a task that a workflow carried out.
func (v *visit) summariseTask(ctx context.Context, message, response string) (string, []protocol.Data, error) {
	a := aside{kind: protocol.UsageSummary, model: v.taskModel(), messages: prompt.ForOutcomeSummary(message, response, v.turn.Role.Task)}
	a.request = v.describe(a.messages)
	a.request.Summary, a.request.CacheKey = true, ""
	return v.asideText(ctx, a, "summary")
}

// asideText makes a call that is to give a text; what it is to be is named in the error of an
// empty one.
func (v *visit) asideText(ctx context.Context, a aside, what string) (string, []protocol.Data, error) {
	r, usage, err := v.callAside(ctx, a)
	if err != nil {
		return "", usage, err
	}
	said := model.ReplyOf(r)
	text := strings.TrimSpace(v.clean(valid(said.Text)))
	switch {
	case text != "":
		return text, usage, nil
	case len(said.Calls) > 0:
		return "", usage, fmt.Errorf("model %s: it called tools in the place of a %s", a.model, what)
	case slices.ContainsFunc(usage, func(d protocol.Data) bool { u, ok := d.(protocol.Usage); return ok && u.Stop == protocol.StopLength }):
		return "", usage, fmt.Errorf("model %s: the %s is empty, since its reasoning used all of max_tokens: raise max_tokens", a.model, what)
	}
	return "", usage, fmt.Errorf("model %s: the %s is empty", a.model, what)
}

// callAside makes the call. usage is none where nothing was asked; that of a call which its context
// ended is journaled already.
func (v *visit) callAside(ctx context.Context, a aside) (r *llms.ContentResponse, usage []protocol.Data, err error) {
	if a.model == "" {
		return nil, nil, fmt.Errorf("the role %s names no model", v.turn.Role.Name)
	}
	m, err := v.agent.open(a.model, filepath.Dir(v.turn.File))
	if err != nil {
		return nil, nil, err
	}
	watch := newWatch(v.emit, v.hidden) // of its times alone
	r, u, err := v.generate(ctx, m, watch, a)
	switch failed, ok := errors.AsType[*model.Error](err); {
	case ctx.Err() != nil, ok && failed.Class == model.Unavailable, err != nil && !ok: // given up, or nothing was asked
		return nil, nil, err
	case err != nil:
		return nil, []protocol.Data{u}, err
	}
	if u.Stop, err = model.StopOf(a.model, r); u.Stop == protocol.StopOverflow {
		u.Stop = protocol.StopLength // the answer was too long, not the request
	}
	return r, []protocol.Data{u}, err
}

// generate makes a call of a turn or beside one. The usage is what is known of it: that of a call which
// its context ended is journaled. A failure of the model is a *model.Error.
func (v *visit) generate(ctx context.Context, m llms.Model, w *watch, a aside, options ...llms.CallOption) (*llms.ContentResponse, protocol.Usage, error) {
	more, err := callOptions(a.offer, string(a.request.Params))
	if err != nil {
		return nil, protocol.Usage{}, err
	}
	held := v.holds.held()
	r, err := m.GenerateContent(model.WithRequest(ctx, a.request), prompt.Contents(a.messages), append(more, options...)...)
	u := model.UsageOf(r) // when it failed or was ended, too: what is known until then
	if err == nil || r != nil || w.heard() {
		u.Held = estimated(a, r, u)
	}
	u.Model, u.TotalMS, u.Kind = a.model, max(0, w.total()-(v.holds.held()-held).Milliseconds()), a.kind
	switch {
	case ctx.Err() != nil:
		// It may have to be paid for.
		u.Stop = protocol.StopGivenUp
		if err := v.emit(context.WithoutCancel(ctx), u); err != nil {
			return nil, u, err
		}
		return nil, u, ctx.Err()
	case err == nil && (r == nil || len(r.Choices) == 0):
		err = &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: the response holds no choice", a.model)}
	case err == nil && model.CallsOf(r) > model.MostCalls:
		err = model.TooManyCalls(a.model)
	}
	if err != nil {
		return nil, u, model.AsError(a.model, err)
	}
	return r, u, nil
}

// estimated is how many tokens of a call its provider did not tell, by their bytes: a limit of tokens holds all the same. Scripts and tapes
// have none.
func estimated(a aside, r *llms.ContentResponse, told protocol.Usage) (tokens int64) {
	if script, _, _ := strings.Cut(a.model, "/"); script == "script" || script == "tape" {
		return 0
	}
	if told.Input == nil {
		tokens = prompt.Estimate(a.offer, a.messages)
	}
	if told.Output == nil {
		said := model.ReplyOf(r)
		tokens += prompt.Estimate(nil, []protocol.Message{{Content: said.Text + said.Thinking, ToolCalls: said.Calls}})
	}
	return tokens
}
