package main

import (
	"context"
	"errors"

	"wf/api"
	"wf/protocol"
	"wf/service/compose"
)

// chatThere talks with an agent of a server: a run of it, or a new one of a workflow that it serves.
func (a *app) chatThere(ctx context.Context, p *target, args []string, f chatFlags) error {
	if err := a.wantsTerminal("chat", "wf run and wf answer"); err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("name a run of %s, or a workflow that it serves: wf ls --hub %s lists runs", p.name, p.name)
	}
	run, err := a.chatRunThere(ctx, p, args[0], f)
	if err != nil {
		return err
	}
	return a.chatScreen(ctx, &chatSession{a: a, api: p.server, run: run})
}

func (a *app) chatRunThere(ctx context.Context, p *target, arg string, f chatFlags) (protocol.RunID, error) {
	run, err := p.run(ctx, arg)
	if err == nil || !errors.Is(err, protocol.ErrUnknownRun) {
		return run, err
	}
	run, _, err = p.Start(ctx, api.Start{Workflow: arg, Type: chatType, CreatedBy: compose.User(), Context: f.run.context, Models: chosenModels(f.run.models)})
	return run, err
}
