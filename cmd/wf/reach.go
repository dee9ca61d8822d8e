package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
)

// nowhere are the commands that need no store of runs, and so do not care for a server.
var nowhere = map[string]bool{
	"init": true, "validate": true, "graph": true, "schema": true, "doctor": true, "models": true, "trust": true,
	"completion": true, "man": true, "version": true, "serve": true, "hub": true, "demo": true, "exit-codes": true, "help": true,
}

// hubFlag adds --hub to a tree of commands. wf serve has a --hub of its own.
func (a *app) hubFlag(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.reach.URL, "hub", "", "work on the runs of a wf hub or wf serve at this address, http://…, https://… or unix:PATH (WF_HUB)")
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
		if e.State != queue.Dead {
			a.Progress("%s waits for a worker: wf cancel %s withdraws it", e.Workflow, e.ID)
		}
	}
	return nil
}
