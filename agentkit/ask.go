package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/prompt"
	"wf/protocol"
	"wf/roles"
)

// errOverflow is a request that was refused for its size. The refusal is journaled and taken in.
var errOverflow = errors.New("the request holds more than the model reads")

// ask makes one model call, trying again and falling back as the class of a failure allows,
// and journals the reply before anything is done with it. Every call leaves a usage event, a
// failed one without counts.
//
// A request has no effect but its price, so it is sent while what it follows from is still
// being written; act waits before an effect. A crash may so lose replies and what was read
// after them: they are asked for again, by the same requests.
func (v *visit) ask(ctx context.Context) error {
	for try := 1; ; try++ {
		name, m, err := v.open(ctx)
		if err != nil {
			return err
		}
		if err := v.announce(ctx, name); err != nil {
			return err
		}
		err = v.call(ctx, name, m)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var failed *model.Error
		if !errors.As(err, &failed) {
			return err // the journal, not the model
		}
		if failed.Overflow != nil {
			return errOverflow
		}
		if failed.Class.Temporary() && try < Tries {
			if wait, ok := backoff(try, failed.RetryAfter); ok {
				if err := model.Wait(ctx, model.Later(wait)); err != nil {
					return err
				}
				continue
			}
		}
		if failed.Class == model.Invalid || v.Fallback() == "" {
			return v.failed(name, failed, try)
		}
		if err := v.fallBack(ctx, name, failed); err != nil {
			return err
		}
		try = 0
	}
}

// open gives the model at hand, or the first of those after it that can be opened.
func (v *visit) open(ctx context.Context) (string, llms.Model, error) {
	if v.Model() == "" {
		return "", nil, failure("", &model.Error{Class: model.Unavailable, Message: fmt.Sprintf(
			"the role %s names no model. Fixes: name one with --model; or as model: of the role or under defaults; "+
				"or, with answers from a file, as script/FILE", v.turn.Role.Name)})
	}
	var first error
	for {
		name := v.Model()
		m, err := v.agent.open(name, filepath.Dir(v.turn.File))
		if err == nil {
			return name, m, nil
		}
		e, ok := errors.AsType[*model.Error](err)
		if !ok {
			e = &model.Error{Class: model.Unavailable, Message: err.Error(), Err: err}
		}
		if first == nil {
			first = v.failed(name, e, 1)
		}
		if v.Fallback() == "" {
			return "", nil, first
		}
		if err := v.fallBack(ctx, name, e); err != nil {
			return "", nil, err
		}
	}
}

func (v *visit) fallBack(ctx context.Context, from string, why *model.Error) error {
	to := v.Fallback()
	return v.journal(ctx, protocol.ModelFallback{From: from, To: to, Reason: string(why.Class)})
}

// announce journals the digest of P_k, once in an attempt.
func (v *visit) announce(ctx context.Context, name string) error {
	if v.Announced {
		return nil
	}
	return v.journal(roles.Soon(ctx), protocol.PromptSent{
		Digest: prompt.Digest(v.turn.History.Tools, v.Prompt).String(), Model: name, Params: protocol.NewText(v.turn.Role.Params),
	})
}

// call makes one request, journals what came of it, and takes it in.
func (v *visit) call(ctx context.Context, name string, m llms.Model) error {
	a := aside{model: name, messages: v.Request(), offer: v.offer}
	a.request = v.describe(a.messages)
	a.request.Call, a.request.Prompt = v.calls, len(v.Prompt)

	watch := newWatch(v.emit, v.hidden)
	r, usage, err := v.generate(ctx, m, watch, a, llms.WithStreamingFunc(watch.text), llms.WithStreamingReasoningFunc(watch.thinking))
	if ctx.Err() != nil {
		return err
	}
	if werr := watch.end(ctx); werr != nil {
		return werr
	}
	failed, ok := errors.AsType[*model.Error](err)
	if err != nil && !ok {
		return fmt.Errorf("role %s: %w", v.turn.Role.Name, err)
	}
	v.calls++
	if err != nil {
		if failed.Overflow != nil {
			ms := usage.TotalMS
			usage = v.Refusal(name, failed.Overflow.Window, failed.Overflow.Held)
			usage.TotalMS = ms
		}
		if err := v.journal(ctx, usage); err != nil {
			return err
		}
		if failed.Overflow != nil {
			v.refusal = v.why(failed)
		}
		return failed
	}
	watch.times(&usage)
	if usage.Stop, err = model.StopOf(name, r); err != nil { // paid for all the same
		if err := v.emit(ctx, usage); err != nil {
			return err
		}
		return err
	}
	_, events := v.reply(r)
	v.old = false
	return v.journal(roles.Soon(ctx), append(events, usage)...)
}

// describe is what a request holds beside its messages.
func (v *visit) describe(messages []protocol.Message) model.Request {
	r := model.Request{
		Role: v.turn.Role.Name, Visit: v.turn.Visit,
		Params: protocol.JSON(v.turn.Role.Params), CacheKey: cacheKey(v.turn, v.turn.Role.Name),
	}
	if v.turn.Item != nil {
		r.Item = &v.turn.Item.Index
	}
	r.Opaque, r.Failed = map[int]string{}, map[int]bool{}
	for i, m := range messages {
		block := m.Opaque
		if block == "" && len(m.ToolCalls) > 0 {
			block = v.blocks[m.ToolCalls[0].ID]
		}
		if block != "" {
			r.Opaque[i] = block
		}
		if m.IsError {
			r.Failed[i] = true
		}
	}
	return r
}

// reply is a response as a message, and what is journaled of it. Secrets are hidden in it, and the ids
// of tool calls made unique within the visit.
func (v *visit) reply(r *llms.ContentResponse) (protocol.Message, []protocol.Data) {
	said := model.ReplyOf(r)
	reply := protocol.Message{Role: protocol.RoleAssistant, Content: v.clean(valid(said.Text)), Opaque: said.Opaque}
	for _, call := range said.Calls {
		id := v.clean(valid(call.ID))
		for n := 1; id == "" || v.used[id]; n++ {
			id = fmt.Sprintf("call_%d_%d", v.calls, len(reply.ToolCalls)+n)
		}
		v.used[id] = true
		raw := valid(call.Arguments)
		args := v.clean(raw)
		if args != raw {
			v.raw[id], v.masked[id] = raw, v.agent.sealed(raw)
			v.agent.Withheld.keep(v.withheldAs(id), raw)
		}
		reply.ToolCalls = append(reply.ToolCalls, protocol.CallMessage{ID: id, Name: v.clean(valid(call.Name)), Arguments: args})
	}
	if block := reply.Opaque; v.clean(block) != block {
		// It may be signed and so cannot be changed: it goes back to its provider, and nowhere else.
		if reply.Opaque = ""; len(reply.ToolCalls) > 0 {
			v.blocks[reply.ToolCalls[0].ID] = block
		}
	}

	var events []protocol.Data
	if text := v.clean(valid(said.Thinking)); text != "" || reply.Opaque != "" {
		events = append(events, protocol.Thinking{Content: protocol.NewText(text), Block: protocol.NewText(reply.Opaque)})
	}
	if reply.Content != "" || len(reply.ToolCalls) == 0 {
		events = append(events, protocol.TextSaid{Content: protocol.NewText(reply.Content)})
	}
	for _, c := range reply.ToolCalls {
		events = append(events, protocol.ToolCall{Call: c.ID, Name: c.Name, Args: protocol.NewText(c.Arguments), Digest: v.masked[c.ID]})
	}
	return reply, events
}

func valid(s string) string { return strings.ToValidUTF8(s, "�") }

// failed is how a call ends the attempt after so many tries: which model, the status, the
// provider's own words, and what to do. What goes into a record says nothing of this machine.
func (v *visit) failed(name string, e *model.Error, tries int) *protocol.Failure {
	f := failure(name, e)
	if e.Class.Temporary() {
		if tries > 1 {
			f.Message += fmt.Sprintf(", in each of %d tries", tries)
		}
		if e.RetryAfter > 0 {
			f.Message += fmt.Sprintf("; the provider asks to wait %v", e.RetryAfter.Round(time.Second))
		}
		f.Message += ". Fixes: try again later; or give the role a retry:, or a further model"
	}
	f.Message = v.clean(valid(f.Message))
	return f
}

// failure is how a failed call ends the attempt. A suspended run leaves no record.
func failure(name string, e *model.Error) *protocol.Failure {
	if e.Class == model.Unavailable {
		return &protocol.Failure{
			ErrorInfo: protocol.ErrorInfo{Code: protocol.ErrModel.Code, Phase: "model", Message: e.Error()},
			Class:     string(e.Class), Suspend: true, Err: fmt.Errorf("%w: %w", protocol.ErrModel, e),
		}
	}
	message := map[model.Class]string{
		model.RateLimit:   "the model %s refuses: too many requests",
		model.ServerError: "the model %s failed to answer",
		model.Timeout:     "the model %s did not answer in time",
		model.Invalid:     "the model %s refuses the request",
	}[e.Class]
	said := strings.TrimPrefix(e.Error(), "model "+name+": ")
	if r := []rune(said); len(r) > saidMax {
		said = string(r[:saidMax]) + "…"
	}
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: string(e.Class), Phase: "model", Message: fmt.Sprintf(message, name) + ": " + said},
		Class:     string(e.Class), Keeps: true, Err: e,
	}
}

// saidMax bounds, in runes, what a failure tells of a provider's words.
const saidMax = 800

// backoff is how long to wait before the next try; ok is false where the server asks for more
// than MaxWait.
func backoff(try int, after time.Duration) (wait time.Duration, ok bool) {
	if after > 0 {
		return after, after <= MaxWait
	}
	return min(Backoff<<(try-1), MaxWait), true
}

// cacheKey is the same for all calls of a role in a run, and in forks of the run, and says nothing about either.
func cacheKey(turn *protocol.Turn, role string) string {
	return "wf-" + hexOf(string(cmp.Or(turn.Origin, turn.Run)) + "\x00" + role)[:24]
}
