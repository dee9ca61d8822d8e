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

// ask makes one model call, waiting and going on to other models as the failures allow,
// and journals the reply before anything is done with it. Every call leaves a usage event, a
// failed one without counts.
//
// A request has no effect but its price, so it is sent while what it follows from is still
// being written; act waits before an effect. A crash may so lose replies and what was read
// after them: they are asked for again, by the same requests.
func (v *visit) ask(ctx context.Context) error {
	if v.Model() == "" {
		return failure("", &model.Error{Class: model.Unavailable, Message: fmt.Sprintf(
			"the role %s names no model. Fixes: name one with --model; or as model: of the role or under defaults; "+
				"or, with answers from a file, as script/FILE", v.turn.Role.Name)})
	}
	o := outage{patience: v.patience(), models: make([]failing, v.Models())}
	for {
		i, name := v.At(), v.Model()
		heard, err := v.try(ctx, name)
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
		then, wait, ok := o.next(i, failed, heard, time.Now(), model.Later)
		if !ok {
			return v.failed(name, failed, o.lasted(i, failed))
		}
		if err := v.waitOut(ctx, name, wait, failed); err != nil {
			return err
		}
		if then != i {
			if err := v.journal(ctx, protocol.ModelFallback{From: name, To: v.Nth(then), Reason: string(failed.Class)}); err != nil {
				return err
			}
		}
	}
}

// try asks a model once. heard is that its answer began.
func (v *visit) try(ctx context.Context, name string) (heard bool, err error) {
	m, err := v.agent.open(name, filepath.Dir(v.turn.File))
	if err != nil {
		if e, ok := errors.AsType[*model.Error](err); ok {
			return false, e
		}
		return false, &model.Error{Class: model.Unavailable, Message: err.Error(), Err: err}
	}
	if err := v.announce(ctx, name); err != nil {
		return false, err
	}
	return v.call(ctx, name, m)
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

// call makes one request, journals what came of it, and takes it in. heard is that an answer began.
func (v *visit) call(ctx context.Context, name string, m llms.Model) (heard bool, err error) {
	a := aside{model: name, messages: v.Request(), offer: v.offer}
	a.request = v.describe(a.messages)
	a.request.Call, a.request.Prompt, a.request.Moved = v.calls, len(v.Prompt), v.Moved()

	watch := newWatch(v.emit, v.hidden)
	r, usage, err := v.generate(ctx, m, watch, a, llms.WithStreamingFunc(watch.text), llms.WithStreamingReasoningFunc(watch.thinking))
	heard = watch.heard()
	if ctx.Err() != nil {
		return heard, err
	}
	if werr := watch.end(ctx); werr != nil {
		return heard, werr
	}
	failed, ok := errors.AsType[*model.Error](err)
	if err != nil && !ok {
		return heard, fmt.Errorf("role %s: %w", v.turn.Role.Name, err)
	}
	v.calls++
	if err != nil {
		if failed.Overflow != nil {
			ms := usage.TotalMS
			usage = v.Refusal(name, failed.Overflow.Window, failed.Overflow.Held)
			usage.TotalMS = ms
		}
		if err := v.journal(ctx, usage); err != nil {
			return heard, err
		}
		if failed.Overflow != nil {
			v.refusal = v.why(failed)
		}
		return heard, failed
	}
	watch.times(&usage)
	if usage.Stop, err = model.StopOf(name, r); err != nil { // paid for all the same
		return heard, v.keptBack(ctx, usage, err)
	}
	if f := v.wordless(usage, model.ReplyOf(r)); f != nil {
		if err := v.emit(ctx, usage); err != nil {
			return heard, err
		}
		return heard, f
	}
	_, events := v.reply(r)
	v.old = false
	return heard, v.journal(roles.Soon(ctx), append(events, usage)...)
}

// keptBack journals a reply that is none, and gives the error that says why.
func (v *visit) keptBack(ctx context.Context, usage protocol.Usage, why error) error {
	full, ok := errors.AsType[*model.Error](why)
	if !ok || full.Overflow == nil {
		if err := v.emit(ctx, usage); err != nil {
			return err
		}
		return why
	}
	known := v.Refusal(usage.Model, full.Overflow.Window, full.Overflow.Held)
	usage.Window, usage.Held = known.Window, known.Held
	if err := v.journal(ctx, usage); err != nil {
		return err
	}
	v.refusal = v.why(full)
	return full
}

// wordless is how an attempt ends with a reply that has as many tokens as it may have, and says and calls nothing; nil for any
// other. The same request would give no other, nor would a correction help.
func (v *visit) wordless(u protocol.Usage, r model.Reply) error {
	if u.Stop != protocol.StopLength || strings.TrimSpace(r.Text) != "" || len(r.Calls) > 0 {
		return nil
	}
	key, tokens, into := "max_tokens", "the tokens", ""
	if strings.Contains(v.turn.Role.Params, `"max_completion_tokens"`) {
		key = "max_completion_tokens"
	}
	if u.Output != nil {
		tokens = fmt.Sprintf("the %d tokens", *u.Output)
	}
	if r.Thinking != "" || r.Opaque != "" || u.Reasoning != nil && *u.Reasoning > 0 {
		into = ", since its reasoning took all of them"
	}
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "max_tokens", Phase: "model", Message: fmt.Sprintf(
			"the model %s said nothing within %s that an answer may have%s. Raise %s in the params of the role %s, or lower its reasoning effort",
			u.Model, tokens, into, key, v.turn.Role.Name)},
		Class: "invalid_output", Keeps: true,
	}
}

// describe is what a request holds beside its messages.
func (v *visit) describe(messages []protocol.Message) model.Request {
	r := model.Request{
		Role: v.turn.Role.Name, Visit: v.turn.Visit,
		Params: protocol.JSON(v.turn.Role.Params), ParamsTexts: v.turn.Role.ParamsTexts, CacheKey: cacheKey(v.turn, v.turn.Role.Name),
	}
	if v.turn.Item != nil {
		r.Item = &v.turn.Item.Index
	}
	r.Opaque, r.Failed = map[int]string{}, map[int]bool{}
	for i, m := range messages {
		if block := v.unsealed(m.Opaque); block != "" {
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
		reply.Opaque = v.sealBlock(block)
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

// failed is how a call ends the attempt: which model, the status, the provider's own words, how
// long it was tried, and what to do. What goes into a record says nothing of this machine.
func (v *visit) failed(name string, e *model.Error, lasted string) *protocol.Failure {
	f := failure(name, e)
	if e.MayPass() {
		f.Message += lasted
		if e.RetryAfter > 0 {
			f.Message += fmt.Sprintf("; the provider asks to wait %v", e.RetryAfter.Round(time.Second))
		}
		more := "a retry:, more patience:"
		if f.Suspend { // what suspends is not tried again by itself
			more = "more patience:"
		}
		f.Message += ". Fixes: wf resume goes on from here later; or give the role " + more + ", or a further model"
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
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: string(e.Class), Phase: "model", Message: fmt.Sprintf(message, name) + ": " + wordsOf(name, e)},
		Class:     string(e.Class), Keeps: true, Err: e,
	}
}

// wordsOf is what a failure tells in the words of the provider.
func wordsOf(name string, e *model.Error) string {
	text := strings.TrimPrefix(e.Error(), "model "+name+": ")
	if r := []rune(text); len(r) > saidMax {
		text = string(r[:saidMax]) + "…"
	}
	return text
}

// saidMax bounds, in runes, what a failure tells of a provider's words.
const saidMax = 800

// cacheKey is the same for all calls of a role in a run, and in forks of the run, and says nothing about either.
func cacheKey(turn *protocol.Turn, role string) string {
	return "wf-" + hexOf(string(cmp.Or(turn.Origin, turn.Run)) + "\x00" + role)[:24]
}
