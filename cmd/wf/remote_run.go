package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"wf/engine/lang"
	"wf/files"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
	"wf/service/compose"
)

// run is wf run: the workflow is one of the server's, by name or by its file there; a file of
// this machine stands for the workflow of its name. Who leaves before the run has begun withdraws
// it; one that has begun goes on.
func (r *remote) run(ctx context.Context, f *pflag.FlagSet, args []string) error {
	for _, name := range []string{"dir", "record", "help-inputs", "trust-mcp"} {
		if f.Changed(name) {
			return usagef("--%s is for runs on this machine, not for those on %s", name, r.url)
		}
	}
	detach, err := f.GetBool("detach")
	if err != nil {
		return err
	}
	start, err := r.start(ctx, f, args[0])
	if err != nil {
		return err
	}
	if start.RequestID == "" {
		start.RequestID, start.Fresh = client.NewRequestID(), true
	}
	wait := &waitTeller{tell: func(text string) { r.progress("%s", text) }}
	early := time.AfterFunc(waitTime, func() { wait.say(waitingFor(client.Waiting{})) })
	run, fresh, err := r.api.Submit(ctx, start, func(w client.Waiting) { wait.say(waitingFor(w)) })
	early.Stop()
	if err != nil && ctx.Err() != nil {
		r.withdraw(ctx, start.RequestID)
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if !fresh {
		r.progress("request %s was started before, as run %s", start.RequestID, run)
	}
	switch {
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
	if fresh && !r.asJSON() {
		r.progress("%s %s  run %s  at %s  (Ctrl-C leaves, the run goes on)", p.cyan("●"), p.bold(start.Workflow), run, r.url)
	}
	return r.attend(ctx, run, 0)
}

// waitTime is after how long someone is told that a run has not begun; a hub says so later.
const waitTime = 2 * time.Second

// waitTeller says why a run has not begun, each reason once until there is another.
type waitTeller struct {
	tell func(string)
	mu   sync.Mutex
	last string
}

func (w *waitTeller) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text != w.last {
		w.tell(text)
	}
	w.last = text
}

// withdrawTime is how long the hub may take to take a job back from who leaves.
const withdrawTime = 3 * time.Second

// withdraw takes a request back that no agent has begun, and says what became of it.
func (r *remote) withdraw(ctx context.Context, request string) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer done()
	switch _, err := r.api.CancelJob(ctx, request); {
	case err == nil:
		r.progress("request %s was withdrawn, nothing has begun", request)
	case errors.Is(err, queue.ErrUnknownJob): // it never got there
	default:
		r.progress("request %s may have begun; wf ls lists the runs: %s", request, oneLine(err.Error(), 200))
	}
}

// waitingFor says why a run has not begun.
func waitingFor(w client.Waiting) string {
	switch {
	case w.Err != nil:
		return "not begun yet: " + oneLine(w.Err.Error(), 200) + "; it is submitted again"
	case w.State == "leased":
		return "the agent " + w.Agent + " begins the run"
	}
	return "the run waits for an agent that has the workflow (Ctrl-C withdraws it)"
}

// start reads the command line into a request.
func (r *remote) start(ctx context.Context, f *pflag.FlagSet, path string) (client.Start, error) {
	name, p, err := r.workflow(path)
	if err != nil {
		return client.Start{}, err
	}
	s := client.Start{Workflow: name, CreatedBy: compose.User()}
	for flag, into := range map[string]*string{"title": &s.Title, "type": &s.Type, "scope": &s.Scope, "target-user": &s.TargetUser,
		"request-id": &s.RequestID, "context": &s.Context} {
		if *into, err = f.GetString(flag); err != nil {
			return s, err
		}
	}
	if _, err := protocol.ParseContext(s.Context); err != nil {
		return s, usagef("--context %s: want conversation, task or fresh", s.Context)
	}
	if s.Tags, err = f.GetStringArray("tag"); err != nil {
		return s, err
	}
	if s.AllowSecretInputs, err = f.GetStringArray("allow-secret-input"); err != nil {
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
	if !files.Exists(path) || filepath.Ext(path) == "" {
		return path, nil, nil
	}
	d, err := r.Read(path)
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
