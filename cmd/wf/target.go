package main

import (
	"cmp"
	"context"
	"os"

	"wf/api"
	"wf/cas"
	"wf/hub/client"
	"wf/protocol"
	"wf/service"
)

// A target is where a command works: the store of this machine, or a server that --hub or WF_HUB
// names. A command that is written against a target is the same at both.
type target struct {
	api.Service
	protocol.Blocks
	find func(ctx context.Context, arg string) (ref, error)
	tell func(ctx context.Context, p *api.Page) error // what people should know behind a list of runs
	name string                                       // of the store's directory, or the address
}

// everywhere are the commands that work at a target.
var everywhere = map[string]bool{"cache": true, "cost": true, "diff": true, "explain": true, "export": true, "ls": true, "messages": true, "show": true, "verify": true}

// hubURL is the address of the server that commands work at; "" is the store of this machine.
func (a *app) hubURL() string { return cmp.Or(a.reach.url, os.Getenv("WF_HUB")) }

// at runs f at the target of the command line, where a store must exist.
func (a *app) at(ctx context.Context, f func(*target) error) error {
	url := a.hubURL()
	if url == "" {
		return a.WithStore(ctx, func(s *cas.Store) error {
			return f(&target{Service: &service.Local{Setup: a.Setup, Store: s, Engine: a.Engine(s, nil)}, Blocks: s, name: s.Dir(), tell: a.tellStore,
				find: func(ctx context.Context, arg string) (ref, error) { return a.resolve(ctx, s, arg) }})
		})
	}
	r, err := a.dial(url)
	if err != nil {
		return err
	}
	defer r.api.Close()
	return f(&target{Service: client.Service{API: r.api}, Blocks: &remoteBlocks{api: r.api}, name: url, tell: r.tellList, find: func(ctx context.Context, arg string) (ref, error) {
		if l, err := protocol.ParseLink(written(arg)); err == nil {
			return ref{block: l}, nil
		}
		run, step, err := r.find(ctx, arg)
		return ref{run: run, step: step}, err
	}})
}

// run is a run by what the user wrote.
func (p *target) run(ctx context.Context, arg string) (protocol.RunID, error) {
	r, err := p.find(ctx, arg)
	if err == nil {
		err = r.mustBeRun(arg)
	}
	return r.run, err
}

// step is a step of a run by what the user wrote.
func (p *target) step(ctx context.Context, arg string) (ref, error) {
	r, err := p.find(ctx, arg)
	if err == nil {
		err = r.mustBeStep(arg)
	}
	return r, err
}
