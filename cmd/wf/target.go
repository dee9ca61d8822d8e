package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/engine"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
	"wf/store"
)

// A target is where a command works: the store of this machine, or a server that --hub or WF_HUB
// names. A command that is written against a target is the same at both.
type target struct {
	api.Service
	api.Follower
	protocol.Blocks
	here   *daemon.Foreground                           // nil at a server
	server *client.API                                  // nil here
	name   string                                       // of the store's directory, or the address
	about  func(ctx context.Context, p *api.Page) error // tells what a user should know behind a list of runs
}

// everywhere are the commands that work at a target.
var everywhere = map[string]bool{
	"answer": true, "artifact": true, "backfill": true, "blame": true, "cache": true, "cancel": true, "chat": true, "cost": true, "diff": true, "explain": true, "export": true, "files": true, "fork": true, "hook": true, "import": true, "log": true, "ls": true,
	"memory": true, "messages": true, "replay": true, "resume": true, "rm": true, "run": true, "show": true, "task": true, "trace": true, "tui": true, "verify": true, "watch": true,
}

// hubURL is the address of the server that commands work at; "" is the store of this machine.
func (a *app) hubURL() string { return cmp.Or(a.reach.URL, os.Getenv("WF_HUB")) }

// at runs f at the target of the command line, where a store must exist.
func (a *app) at(ctx context.Context, f func(*target) error) error {
	return a.opening(ctx, a.WithStore, f)
}

// atNew is at where a store is made when there is none.
func (a *app) atNew(ctx context.Context, f func(*target) error) error {
	return a.opening(ctx, a.WithNewStore, f)
}

// opening is at with a way to open the store of this machine.
func (a *app) opening(ctx context.Context, open func(context.Context, func(store.Store) error) error, f func(*target) error) error {
	switch url := a.hubURL(); {
	case url != "":
		return a.atServer(url, f)
	case a.worker != "":
		return usagef("--worker %s names a worker of a hub: name the hub with --hub", a.worker)
	}
	return open(ctx, func(s store.Store) error { return f(a.atStore(s)) })
}

// inTarget is the RunE of a command that works at the target of the command line.
func (a *app) inTarget(f func(ctx context.Context, p *target, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.at(ctx, func(p *target) error { return f(ctx, p, args) })
	}
}

// ofRun is that of a command whose first argument is a run, without one the latest.
func (a *app) ofRun(f func(ctx context.Context, p *target, run protocol.RunID) error) func(*cobra.Command, []string) error {
	return a.inTarget(func(ctx context.Context, p *target, args []string) error {
		run, err := p.run(ctx, latestUnless(args))
		if err != nil {
			return err
		}
		return f(ctx, p, run)
	})
}

// ofStep is that of a command whose first argument is a step.
func (a *app) ofStep(f func(ctx context.Context, p *target, at api.Ref) error) func(*cobra.Command, []string) error {
	return a.inTarget(func(ctx context.Context, p *target, args []string) error {
		at, err := p.find(ctx, args[0])
		if err == nil {
			err = at.MustBeStep(written(args[0]))
		}
		if err != nil {
			return err
		}
		return f(ctx, p, at)
	})
}

// latestUnless is the run named on the command line, else the latest.
func latestUnless(args []string) string {
	if len(args) == 0 {
		return "-1"
	}
	return args[0]
}

// answer writes what was asked for: as JSON for programs, by show for people.
func answer[T any](a *app, v T, err error, show func(T) error) error {
	switch {
	case err != nil:
		return err
	case a.AsJSON():
		return a.Answer(v)
	}
	return show(v)
}

// atStore is the target of a store of this machine.
func (a *app) atStore(s store.Store) *target {
	here := daemon.NewForeground(a.Setup, s)
	return &target{Service: here, Follower: here, Blocks: s, here: here, name: store.Shown(s.Name()), about: a.tellStore}
}

func (a *app) atServer(url string, f func(*target) error) error {
	way := a.reach
	way.URL = url
	server, err := way.Dial()
	if err != nil {
		return err
	}
	defer server.Close()
	there := client.Service{API: server, Name: url, Tell: func(text string) { a.Progress("%s", text) }, Waits: a.waits(), Worker: a.worker,
		Decode: func(read func(protocol.Link) ([]byte, error), run protocol.RunID, e protocol.Entry) (api.Update, error) {
			return engine.ReadUpdate(read, run, e)
		}}
	return f(&target{Service: there, Follower: there, Blocks: &client.Blocks{API: server}, server: server, name: url,
		about: func(ctx context.Context, p *api.Page) error { return a.tellServer(ctx, server, url, p) }})
}

// find is what the user wrote.
func (p *target) find(ctx context.Context, arg string) (api.Ref, error) {
	return p.Resolve(ctx, written(arg))
}

// run is a run by what the user wrote.
func (p *target) run(ctx context.Context, arg string) (protocol.RunID, error) {
	r, err := p.find(ctx, arg)
	if err == nil {
		err = r.MustBeRun(written(arg))
	}
	return r.Run, err
}

// runOrStep is a run, or a step of one, by what the user wrote.
func (p *target) runOrStep(ctx context.Context, arg string) (api.Ref, error) {
	r, err := p.find(ctx, arg)
	if err == nil && r.Block.Defined() {
		err = usagef("%s is a block, a run or a step of one is wanted", written(arg))
	}
	return r, err
}

// besideTrials finds what the user wrote, where -1, -2 … count no run that a sweep, an evaluation or a bisect made.
func (p *target) besideTrials(ctx context.Context, arg string, find func(context.Context, string) (api.Ref, error)) (api.Ref, error) {
	name, err := p.here.BesideTrials(ctx, written(arg))
	if err != nil {
		return api.Ref{}, err
	}
	return find(ctx, name)
}

// shown reads a run to show it: all of it as JSON, its last steps to a person.
func (a *app) shown(ctx context.Context, p *target, run protocol.RunID) (*api.Run, error) {
	if a.AsJSON() {
		return p.Run(ctx, run, api.Window{})
	}
	v, err := p.Run(ctx, run, api.Window{Limit: lastSteps})
	if err != nil || v.Earlier == 0 {
		return v, err
	}
	blamed := render.Blamed(v)
	if blamed == "" || slices.ContainsFunc(v.Steps, func(s *api.Step) bool { return s.ID == blamed }) {
		return v, nil
	}
	x, err := p.Step(ctx, run, blamed) // such as an early item of a long fan-out
	switch {
	case errors.Is(err, protocol.ErrUnknownStep): // the words of a workflow that only read so
		return v, nil
	case err != nil:
		return nil, err
	}
	v.Steps = slices.Insert(v.Steps, 0, x.Step)
	return v, nil
}

// nowhere are the commands that need no store of runs, and so do not care for a server.
var nowhere = map[string]bool{
	"init": true, "validate": true, "graph": true, "schema": true, "doctor": true, "models": true, "trust": true,
	"completion": true, "man": true, "version": true, "serve": true, "hub": true, "demo": true, "exit-codes": true, "help": true,
}

// hubFlag adds --hub to a tree of commands. wf serve has a --hub of its own.
func (a *app) hubFlag(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.reach.URL, "hub", "", "work on the runs of a wf hub or wf serve at this address, http://…, https://… or unix:PATH; of several with commas between the first that answers (WF_HUB)")
	f.StringVar(&a.reach.TokenFile, "hub-token-file", "", "file with the token for it (WF_HUB_TOKEN_FILE; a wf hub of yours on this machine needs none)")
	f.StringVar(&a.reach.CA, "hub-ca", "", "certificate (PEM) that signed the server's, instead of those of the system")
	for _, cmd := range root.Commands() {
		if !nowhere[cmd.Name()] && !everywhere[cmd.Name()] {
			a.hereAlone(cmd)
		}
	}
}

// hereAlone has a command, and those below it, refuse a server: else they would silently work on another store.
func (a *app) hereAlone(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.hereAlone(sub)
	}
	if here := cmd.RunE; here != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if url := a.hubURL(); url != "" {
				return usagef("wf %s works on the store of this machine, not on %s; leave --hub out, or unset WF_HUB", commandName(cmd), url)
			}
			return here(cmd, args)
		}
	}
}

// tellServer names the workers that did not list their runs, and the requests that no worker has begun.
func (a *app) tellServer(ctx context.Context, server *client.API, url string, p *api.Page) error {
	if len(p.Missing) > 0 {
		a.Progress("the runs of %s are not listed: no answer from there", strings.Join(p.Missing, ", "))
	}
	if a.AsJSON() {
		return nil
	}
	raw, err := server.Queue(ctx)
	if errors.Is(err, protocol.ErrNotFound) {
		return nil // only a hub has a queue
	}
	if err != nil {
		return err
	}
	var list struct{ Items []queue.Entry }
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("queue of %s: %w", url, err)
	}
	for _, e := range list.Items {
		switch e.State {
		case queue.Leased:
			a.Progress("%s is being begun by the worker %s", e.Workflow, e.Worker)
		case queue.Queued:
			a.Progress("%s waits for %s: wf cancel %s withdraws it", e.Workflow, whatFor(e.Reason), e.ID)
		}
	}
	return nil
}
