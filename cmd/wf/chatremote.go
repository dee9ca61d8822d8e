package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"wf/hub/client"
	"wf/protocol"
	"wf/service/compose"
)

// chat talks with an agent of a daemon elsewhere: a run of it, or a new one of a workflow that
// it serves.
func (r *remote) chat(ctx context.Context, flags *pflag.FlagSet, args []string) error {
	if err := r.wantsTerminal("chat", "wf run and wf answer"); err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("name a run of %s, or a workflow that it serves: wf ls --hub %s lists runs", r.url, r.url)
	}
	run, err := r.chatRun(ctx, flags, args[0])
	if err != nil {
		return err
	}
	return r.chatScreen(ctx, &chatSession{a: r.app, api: r.api, run: run})
}

func (r *remote) chatRun(ctx context.Context, flags *pflag.FlagSet, arg string) (protocol.RunID, error) {
	run, _, err := r.find(ctx, arg)
	if err == nil || !errors.Is(err, protocol.ErrUnknownRun) {
		return run, err
	}
	mode, err := flags.GetString("context")
	if err != nil {
		return "", err
	}
	models, err := flags.GetStringArray("model")
	if err != nil {
		return "", err
	}
	start := client.Start{Workflow: arg, Type: chatType, CreatedBy: compose.User(), Context: mode}
	for _, m := range models {
		role, name, ok := strings.Cut(m, "=")
		if !ok {
			role, name = "", m
		}
		if start.Models == nil {
			start.Models = map[string][]string{}
		}
		start.Models[role] = append(start.Models[role], name)
	}
	run, _, err = r.api.Submit(ctx, start, func(w client.Waiting) {
		if w.Err != nil {
			r.progress("waiting for %s: %v", r.url, w.Err)
		}
	})
	return run, err
}

// tui looks through the runs of a daemon elsewhere.
func (r *remote) tui(ctx context.Context, _ *pflag.FlagSet, _ []string) error {
	if err := r.wantsTerminal("tui", "wf ls and wf show"); err != nil {
		return err
	}
	return r.app.tui(ctx, r.api)
}
