package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"wf/engine"
	"wf/hub/queue"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

// attend follows a run until it stops. A person at the terminal is asked what it asks, unless
// --no-input.
func (r *remote) attend(ctx context.Context, run protocol.RunID, from protocol.Seq) error {
	for {
		if err := r.followUntilStopped(ctx, run, from, r.newReporter); err != nil {
			return err
		}
		if !r.interactive() || r.asJSON() {
			return r.conclude(ctx, run)
		}
		v, _, err := r.view(ctx, run)
		if err != nil {
			return err
		}
		asked, err := r.askAtTerminal(ctx, v, func(ctx context.Context, reply engine.Reply) error {
			_, _, err := r.api.Act(ctx, run, "answer", answerBody(reply))
			return err
		})
		if err != nil {
			return err
		}
		if !asked {
			return r.conclude(ctx, run)
		}
		from = v.Seq
	}
}

// answerBody is an answer as the API takes it.
func answerBody(reply engine.Reply) map[string]any {
	body := map[string]any{"step": reply.Step, "signal": reply.Signal, "text": reply.Text, "choice": reply.Choice}
	if len(reply.Fields) > 0 {
		body["fields"] = json.RawMessage(reply.Fields)
	}
	if reply.Shown != "" {
		body["shown"] = reply.Shown
	}
	return body
}

// answer is wf answer.
func (r *remote) answer(ctx context.Context, f *pflag.FlagSet, args []string) error {
	var flags answerFlags
	var err error
	if flags.choice, err = f.GetString("choice"); err != nil {
		return err
	}
	if flags.fields, err = f.GetStringArray("field"); err != nil {
		return err
	}
	if flags.signal, err = f.GetString("signal"); err != nil {
		return err
	}
	record, err := f.GetBool("record")
	if err != nil {
		return err
	}
	reply, err := r.reply(args[1:], flags)
	if err != nil {
		return err
	}
	run, step, err := r.find(ctx, args[0])
	if err != nil {
		return err
	}
	before, _, err := r.view(ctx, run)
	if err != nil {
		return err
	}
	reply.Step = step
	if reply.Fields, err = flags.read(before, step); err != nil {
		return err
	}
	_, answered, err := r.api.Act(ctx, run, "answer", answerBody(reply))
	if err != nil {
		return err
	}
	r.progress("answered %s of run %s", answered, run)
	if record {
		v, raw, err := r.view(ctx, run)
		if err != nil {
			return err
		}
		return r.outcome(v, raw)
	}
	return r.attend(ctx, run, before.Seq)
}

// cancel is wf cancel; at a hub also of a request that no agent has begun.
func (r *remote) cancel(ctx context.Context, f *pflag.FlagSet, args []string) error {
	reason, err := f.GetString("reason")
	if err != nil {
		return err
	}
	run, _, err := r.find(ctx, args[0])
	if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrUsage) { // a request id may hold a colon
		return r.cancelJob(ctx, written(args[0]), err)
	}
	if err != nil {
		return err
	}
	if _, _, err := r.api.Act(ctx, run, "cancel", map[string]any{"reason": reason}); err != nil {
		return err
	}
	v, raw, err := r.view(ctx, run)
	if err != nil {
		return err
	}
	return r.outcome(v, raw)
}

// cancelJob takes a request out of the queue of a hub; where there is none of that id the answer is
// noRun.
func (r *remote) cancelJob(ctx context.Context, request string, noRun error) error {
	raw, err := r.api.CancelJob(ctx, request)
	switch {
	case errors.Is(err, queue.ErrUnknownJob), errors.Is(err, protocol.ErrNotFound): // an agent has no queue
		return noRun
	case err != nil:
		return err
	case r.asJSON():
		return r.pass(raw)
	}
	_, err = fmt.Fprintf(r.out, "request %s is cancelled: no agent had begun it\n", request)
	return err
}

// resume is wf resume.
func (r *remote) resume(ctx context.Context, f *pflag.FlagSet, args []string) error {
	if f.Changed("record") || f.Changed("trust-mcp") {
		return usagef("--record and --trust-mcp are for runs on this machine")
	}
	limits := map[string]any{}
	given, err := f.GetStringArray("limit")
	if err != nil {
		return err
	}
	for _, text := range given {
		if _, err := service.ParseLimit(text, compose.User()); err != nil {
			return err
		}
		name, value, _ := strings.Cut(text, "=")
		limits[name] = limitValue(name, value)
	}
	for _, name := range []string{"steps", "tokens", "cost-usd", "duration"} {
		if f.Changed(name) {
			key := strings.ReplaceAll(name, "-", "_")
			limits[key] = limitValue(key, f.Lookup(name).Value.String())
		}
	}
	run, _, err := r.find(ctx, latestUnless(args))
	if err != nil {
		return err
	}
	before, raw, err := r.view(ctx, run)
	if err != nil {
		return err
	}
	if before.Status.Final() {
		return errors.Join(r.outcome(before, raw), outcome(before))
	}
	body := map[string]any{}
	if len(limits) > 0 {
		body["limits"] = limits
	}
	if _, _, err := r.api.Act(ctx, run, "resume", body); err != nil && !errors.Is(err, protocol.ErrRunLive) {
		return err
	}
	return r.attend(ctx, run, before.Seq)
}

// limitValue is a limit as the API takes it: numbers but for durations.
func limitValue(name, text string) any {
	if name == "duration" {
		return text
	}
	return json.RawMessage(text)
}
