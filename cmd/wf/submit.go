package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/engine/lang"
	"wf/files"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
	"wf/service/compose"
)

// submit begins a run at a server. The workflow is one of the server's, by its name or its file there; a file of
// this machine means the workflow of its name with the same definition. A user who leaves before the run has begun withdraws it; one that
// has begun goes on.
func (a *app) submit(ctx context.Context, p *target, path string, f runFlags) (run protocol.RunID, fresh bool, err error) {
	if err := a.forRunsHere(f.dir, f.record); err != nil {
		return "", false, err
	}
	x, err := a.submission(ctx, p, path, f)
	if files.Exists(path) {
		err = wantsInputs(err, path)
	}
	if err != nil {
		return "", false, err
	}
	waits := a.waits()
	early := time.AfterFunc(waitTime, func() { waits(client.Waiting{}) })
	defer early.Stop()
	run, fresh, err = p.server.Submit(ctx, &x, waits)
	if name, definition := api.Unpinned(x.Workflow); definition != "" && errors.Is(err, protocol.ErrNotFound) {
		if err = a.othersThere(ctx, p, path, name, definition, err); err == nil { // an older server, which knows names alone
			x.Workflow = name
			run, fresh, err = p.server.Submit(ctx, &x, waits)
		}
	}
	if err != nil && ctx.Err() != nil {
		a.withdraw(ctx, p, x.RequestID)
		err = context.Cause(ctx)
	}
	if errors.Is(err, protocol.ErrInputs) && files.Exists(path) {
		err = protocol.Hinted(err, "wf run "+protocol.ShellWord(path)+" --help-inputs shows what it takes")
	}
	return run, fresh, err
}

// othersThere says which definitions of a workflow the server has, where it does not start that of a file. It is nil for a server that has
// it, and no other one.
func (a *app) othersThere(ctx context.Context, p *target, path, name string, definition api.CID, refused error) error {
	all, err := p.Workflows(ctx)
	if err != nil {
		return errors.Join(refused, err)
	}
	var has, ways []string
	same := true
	for _, w := range all {
		if w.Name != name {
			continue
		}
		same = same && w.Definition == definition
		by := ""
		if len(w.Agents) > 0 {
			by = " (" + strings.Join(w.Agents, ", ") + ")"
		}
		has = append(has, cmp.Or(w.Definition, "an invalid one")+by)
		if w.Definition != "" {
			ways = append(ways, api.Pinned(name, w.Definition))
		}
	}
	switch {
	case len(has) == 0:
		return protocol.ErrNotFound.With("put the file where wf serve there looks for workflows, or leave --hub out", "%s has no workflow %s", a.hubURL(), name)
	case same:
		return nil
	case len(ways) == 1:
		ways[0] = name
	}
	for i, way := range ways {
		ways[i] = "wf run " + protocol.ShellWord(way)
	}
	way := "put the file there"
	if len(ways) > 0 {
		way = strings.Join(ways, ", or ") + " starts what is there"
	}
	return protocol.ErrNotFound.With(way, "%s is another definition than the workflow %s of %s: the file has %s, the server %s",
		path, name, a.hubURL(), definition, strings.Join(has, ", "))
}

// forRunsHere refuses the flags that mean nothing to a server, where the command line names one.
func (a *app) forRunsHere(dir, record string) error {
	server := a.hubURL()
	if server == "" {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--dir", dir != ""}, {"--record", record != ""}, {"--patience", a.Patience != nil}, {"--trust", len(a.Trusted) > 0}, {"--trust-mcp", len(a.Setup.Options.Servers) > 0}} {
		if flag.given {
			return usagef("%s is for runs on this machine, not for those on %s", flag.name, server)
		}
	}
	return nil
}

// waits says why a run has not begun, each reason once until there is another.
func (a *app) waits() func(client.Waiting) {
	var mu sync.Mutex
	var last string
	return func(w client.Waiting) {
		mu.Lock()
		defer mu.Unlock()
		text := waitingFor(w)
		if text != last {
			a.Progress("%s", text)
		}
		last = text
	}
}

func waitingFor(w client.Waiting) string {
	switch {
	case w.Err != nil:
		return "not begun yet: " + render.OneLine(w.Err.Error(), 200) + "; it is submitted again"
	case w.State == "leased":
		return "the worker " + w.Agent + " begins the run"
	}
	return "the run waits for " + whatFor(w.Reason) + " (Ctrl-C withdraws it)"
}

// whatFor is what a job waits for, by the reason that a hub gives.
func whatFor(reason string) string {
	switch reason {
	case "no_capacity":
		return "a worker with room for it"
	case "draining":
		return "a worker that does not drain"
	case "no_key":
		return "a worker that has its key"
	}
	return "a worker that has the workflow"
}

// withdrawTime is how long a hub may take to withdraw a request of a user who leaves.
const withdrawTime = 3 * time.Second

// withdraw takes a request back that no worker has begun, and says what became of it.
func (a *app) withdraw(ctx context.Context, p *target, request string) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer done()
	switch _, err := p.server.CancelJob(ctx, request); {
	case err == nil:
		a.Progress("request %s was withdrawn, nothing has begun", request)
	case errors.Is(err, queue.ErrUnknownJob): // it never got there
	default:
		a.Progress("request %s may have begun; wf ls lists the runs: %s", request, render.OneLine(err.Error(), 200))
	}
}

// submission reads the command line into a request.
func (a *app) submission(ctx context.Context, p *target, path string, f runFlags) (x api.Start, err error) {
	x = f.Start
	x.Workflow, x.CreatedBy, x.CausedBy = path, compose.User(), os.Getenv(protocol.CausedByEnv)
	var known *lang.Program // nil for a workflow that is not on this machine
	if files.Exists(path) && filepath.Ext(path) != "" {
		if _, known, err = a.readValid(path); err != nil {
			return x, err
		}
		def, err := known.Block()
		if err != nil {
			return x, err
		}
		x.Workflow = api.Pinned(known.Workflow.Name, def.Link.String())
	}
	read := func(name, text string) (any, error) { return known.Coerce(name, text) }
	if known == nil {
		types, err := inputTypes(ctx, p, path, f)
		if err != nil {
			return x, err
		}
		read = func(name, text string) (any, error) {
			if types[name] != "string" && json.Valid([]byte(text)) {
				return json.RawMessage(text), nil
			}
			return text, nil
		}
	}
	given, err := a.given(read, f)
	if err != nil {
		return x, err
	}
	x.Inputs = make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		if x.Inputs[name], err = protocol.PlainJSON(value); err != nil {
			return x, err
		}
	}
	x.Models = chosenModels(f.models)
	return x, nil
}

// chosenModels reads --model [role=]model; "" is every role.
func chosenModels(flags []string) map[string]api.ModelList {
	out := map[string]api.ModelList{}
	for _, f := range flags {
		role, model, ok := strings.Cut(f, "=")
		if !ok {
			role, model = "", f
		}
		out[role] = append(out[role], model)
	}
	return out
}

// inputTypes are the JSON types of the inputs of a workflow of the server, where the command line gives any.
func inputTypes(ctx context.Context, p *target, workflow string, f runFlags) (map[string]string, error) {
	if len(f.inputs) == 0 {
		return nil, nil
	}
	all, err := p.Workflows(ctx)
	if errors.Is(err, client.ErrUnreachable) || errors.Is(err, protocol.ErrWorkerAway) {
		return nil, err
	}
	types := map[string]string{}
	name, definition := api.Unpinned(workflow)
	for _, w := range all {
		if (w.Name != name || definition != "" && w.Definition != definition) && w.File != workflow {
			continue
		}
		var schema struct {
			Properties map[string]struct{ Type string }
		}
		if err := json.Unmarshal(w.Inputs, &schema); err != nil {
			return nil, fmt.Errorf("inputs of %s: %w", workflow, err)
		}
		for input, property := range schema.Properties {
			types[input] = property.Type
		}
	}
	return types, err
}
