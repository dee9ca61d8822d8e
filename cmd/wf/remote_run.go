package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"wf/engine/lang"
	"wf/hub/client"
	"wf/protocol"
)

// run is wf run: the workflow is one of the server's, by name or by its file there; a file of
// this machine stands for the workflow of its name.
func (r *remote) run(ctx context.Context, f *pflag.FlagSet, args []string) error {
	for _, name := range []string{"dir", "record", "help-inputs", "trust-mcp"} {
		if f.Changed(name) {
			return usagef("--%s is for runs on this machine, not for those on %s", name, r.url)
		}
	}
	start, err := r.start(ctx, f, args[0])
	if err != nil {
		return err
	}
	last := ""
	run, fresh, err := r.api.Submit(ctx, start, func(w client.Waiting) {
		text := waitingFor(w)
		if text != last {
			r.progress("%s", text)
		}
		last = text
	})
	if err != nil {
		return err
	}
	detach, err := f.GetBool("detach")
	switch {
	case err != nil:
		return err
	case !fresh:
		r.progress("request %s was started before, as run %s", start.RequestID, run)
		return r.conclude(ctx, run)
	case detach && r.asJSON():
		_, raw, err := r.view(ctx, run)
		if err != nil {
			return err
		}
		return r.pass(raw)
	case detach:
		r.progress("run %s goes on at %s; wf watch %s follows it", run, r.url, run)
		_, err := fmt.Fprintln(r.out, run)
		return err
	}
	p := paint{r.err.color}
	if !r.asJSON() {
		r.progress("%s %s  run %s  at %s  (Ctrl-C leaves, the run goes on)", p.cyan("●"), p.bold(start.Workflow), run, r.url)
	}
	return r.watch(ctx, run, 0, r.newReporter)
}

// waitingFor says why a run has not begun.
func waitingFor(w client.Waiting) string {
	switch {
	case w.Err != nil:
		return "not begun yet: " + oneLine(w.Err.Error(), 200) + "; it is submitted again"
	case w.State == "leased":
		return "the agent " + w.Agent + " begins the run"
	}
	return "the run waits for an agent that has the workflow"
}

// start reads the command line into a request.
func (r *remote) start(ctx context.Context, f *pflag.FlagSet, path string) (client.Start, error) {
	name, p, err := r.workflow(path)
	if err != nil {
		return client.Start{}, err
	}
	s := client.Start{Workflow: name, CreatedBy: whoami()}
	for flag, into := range map[string]*string{"title": &s.Title, "type": &s.Type, "scope": &s.Scope, "target-user": &s.TargetUser, "request-id": &s.RequestID} {
		if *into, err = f.GetString(flag); err != nil {
			return s, err
		}
	}
	if s.Tags, err = f.GetStringArray("tag"); err != nil {
		return s, err
	}
	if s.Inputs, err = r.inputs(ctx, f, name, p); err != nil {
		return s, err
	}
	models, err := f.GetStringArray("model")
	if err != nil {
		return s, err
	}
	for _, m := range models {
		role, model, ok := strings.Cut(m, "=")
		if !ok {
			role, model = "", m
		}
		if s.Models == nil {
			s.Models = map[string][]string{}
		}
		s.Models[role] = append(s.Models[role], model)
	}
	return s, nil
}

// workflow is the name under which the server knows a workflow; p is nil for one that is not on
// this machine.
func (r *remote) workflow(path string) (name string, p *lang.Program, err error) {
	if !there(path) || filepath.Ext(path) == "" {
		return path, nil, nil
	}
	d, err := r.readDefinition(path)
	if err != nil {
		return "", nil, err
	}
	if p, err = r.valid(d); err != nil {
		return "", nil, err
	}
	return p.Workflow.Name, p, nil
}

// inputs reads -i and -I; texts become what the workflow wants.
func (r *remote) inputs(ctx context.Context, f *pflag.FlagSet, name string, p *lang.Program) (map[string]json.RawMessage, error) {
	var flags runFlags
	var err error
	if flags.inputs, err = f.GetStringArray("input"); err != nil {
		return nil, err
	}
	if flags.inputsFile, err = f.GetString("inputs"); err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	if p != nil {
		given, err := r.given(p, flags)
		if err != nil {
			return nil, err
		}
		for name, value := range given {
			if out[name], err = json.Marshal(value); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if flags.inputsFile != "" {
		b, err := r.readArgument(flags.inputsFile)
		if err == nil {
			err = json.Unmarshal(b, &out)
		}
		if err != nil {
			return nil, fail(protocol.ErrInputs, "inputs are one JSON object", "-I %s: %v", flags.inputsFile, err)
		}
	}
	if len(flags.inputs) == 0 {
		return out, nil
	}
	types, err := r.inputTypes(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, arg := range flags.inputs {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("-i %q: want name=value, or name=@file", arg)
		}
		if file, ok := strings.CutPrefix(text, "@"); ok {
			b, err := r.readArgument(file)
			if err != nil {
				return nil, fail(protocol.ErrInputs, "", "-i %s: %v", arg, err)
			}
			text = string(b)
		}
		if t := types[name]; t != "string" && json.Valid([]byte(text)) {
			out[name] = json.RawMessage(text)
		} else if out[name], err = json.Marshal(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// inputTypes are the JSON types of the inputs of a workflow of the server.
func (r *remote) inputTypes(ctx context.Context, name string) (map[string]string, error) {
	items, err := r.api.Workflows(ctx)
	if errors.Is(err, client.ErrUnreachable) || errors.Is(err, protocol.ErrAgentAway) {
		return nil, err
	}
	types := map[string]string{}
	for _, raw := range items {
		var w struct {
			Name, File string
			Inputs     struct {
				Properties map[string]struct{ Type string }
			}
		}
		if json.Unmarshal(raw, &w) != nil || w.Name != name && w.File != name {
			continue
		}
		for input, property := range w.Inputs.Properties {
			types[input] = property.Type
		}
	}
	return types, err
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
	body := map[string]any{"step": step, "signal": reply.Signal, "text": reply.Text, "choice": reply.Choice}
	if len(reply.Fields) > 0 {
		body["fields"] = json.RawMessage(reply.Fields)
	}
	_, answered, err := r.api.Act(ctx, run, "answer", body)
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
	return r.watch(ctx, run, before.Seq, r.newReporter)
}

// cancel is wf cancel.
func (r *remote) cancel(ctx context.Context, f *pflag.FlagSet, args []string) error {
	reason, err := f.GetString("reason")
	if err != nil {
		return err
	}
	run, _, err := r.find(ctx, args[0])
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
		if _, err := limitFlag(text); err != nil {
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
	return r.watch(ctx, run, before.Seq, r.newReporter)
}

// limitValue is a limit as the API takes it: numbers but for durations.
func limitValue(name, text string) any {
	if name == "duration" {
		return text
	}
	return json.RawMessage(text)
}
