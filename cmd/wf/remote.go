package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/hub/client"
	"wf/protocol"
)

// remotes are the commands that --hub sends to a server instead of the store of this machine.
var remotes = map[string]func(*remote, context.Context, *pflag.FlagSet, []string) error{
	"run":    (*remote).run,
	"log":    (*remote).log,
	"replay": (*remote).replay,
	"watch":  (*remote).watchRun,
	"answer": (*remote).answer,
	"cancel": (*remote).cancel,
	"resume": (*remote).resume,
	"chat":   (*remote).chat,
	"tui":    (*remote).tui,
}

// local are the commands that need no store of runs, and so do not care for a hub.
var local = map[string]bool{
	"init": true, "validate": true, "graph": true, "schema": true, "doctor": true, "models": true, "trust": true,
	"completion": true, "man": true, "version": true, "serve": true, "hub": true, "demo": true, "exit-codes": true, "help": true,
}

// hubFlag adds --hub to a tree of commands, and has those that can go there go there. wf serve
// has a --hub of its own.
func (a *app) hubFlag(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.reach.url, "hub", "", "work on the runs of a wf hub or wf serve at this address, http://…, https://… or unix:PATH (WF_HUB)")
	f.StringVar(&a.reach.tokenFile, "hub-token-file", "", "file with the token for it (WF_HUB_TOKEN_FILE; a wf hub of yours on this machine needs none)")
	f.StringVar(&a.reach.ca, "hub-ca", "", "certificate (PEM) that signed the server's, instead of those of the system")
	for _, cmd := range root.Commands() {
		if !local[cmd.Name()] && !everywhere[cmd.Name()] {
			a.elsewhere(cmd, remotes[cmd.Name()])
		}
	}
}

// elsewhere has a command go to the server that --hub or WF_HUB names, as there does; where that is nil, and
// for the commands below it, a server is refused: else they would silently work on another store.
func (a *app) elsewhere(cmd *cobra.Command, there func(*remote, context.Context, *pflag.FlagSet, []string) error) {
	for _, sub := range cmd.Commands() {
		a.elsewhere(sub, nil)
	}
	if here := cmd.RunE; here != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			url := a.hubURL()
			switch {
			case url == "":
				return here(cmd, args)
			case there == nil:
				return usagef("wf %s works on the store of this machine, not on %s; leave --hub out, or unset WF_HUB", commandName(cmd), url)
			}
			r, err := a.dial(url)
			if err != nil {
				return err
			}
			defer r.api.Close()
			return there(r, cmd.Context(), cmd.Flags(), args)
		}
	}
}

// remote is a server whose runs a command works on.
type remote struct {
	*app
	api *client.API
	url string
}

// dial prepares to speak to a server; nothing is sent yet.
func (a *app) dial(url string) (*remote, error) {
	way, err := a.reachHub(url)
	if err != nil {
		return nil, err
	}
	api, err := client.New(way.url, way.Options)
	if err != nil {
		return nil, err
	}
	return &remote{app: a, api: api, url: url}, nil
}

// find resolves a reference to a run of the server, or to a step of one.
func (r *remote) find(ctx context.Context, arg string) (run protocol.RunID, step string, err error) {
	name, step, _ := strings.Cut(written(arg), ":")
	if step != "" {
		id, err := protocol.ParseStepID(step)
		if err != nil {
			return "", "", usagef("%v; a step is named as in -1:coder#2", err)
		}
		step = id.String()
	}
	if latest().MatchString(name) {
		run, err = r.latest(ctx, name)
		return run, step, err
	}
	run, err = r.named(ctx, name)
	return run, step, err
}

// latest is the nth newest run that is nobody's sub-workflow.
func (r *remote) latest(ctx context.Context, name string) (protocol.RunID, error) {
	var n int
	if _, err := fmt.Sscanf(name, "-%d", &n); err != nil || n < 1 || n > maxPage {
		return "", usagef("%s: the latest run is -1", name)
	}
	l, err := r.api.Runs(ctx, client.Query{Limit: n})
	if err != nil {
		return "", err
	}
	r.tellMissing(l)
	if len(l.Items) < n {
		return "", fail(protocol.ErrUnknownRun, "wf ls lists the runs", "%s: %s has %s", name, r.url, protocol.Plural(len(l.Items), "run"))
	}
	return idOf(l.Items[n-1])
}

// maxPage is the most runs that a server lists at once.
const maxPage = 500

// named is the run of an id, or of the beginning of one.
func (r *remote) named(ctx context.Context, wanted string) (protocol.RunID, error) {
	name := strings.ToUpper(wanted)
	l, err := r.api.Runs(ctx, client.Query{Text: name, Limit: maxPage, All: true})
	if err != nil {
		return "", err
	}
	var found []protocol.RunID
	for _, raw := range l.Items {
		id, err := idOf(raw)
		switch {
		case err != nil:
			return "", err
		case string(id) == name:
			return id, nil
		case strings.HasPrefix(string(id), name):
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		// The server may know it, and not have asked its agent: it says what is wrong then.
		_, err := r.api.Run(ctx, protocol.RunID(name))
		switch {
		case err == nil:
			return protocol.RunID(name), nil
		case !errors.Is(err, protocol.ErrUnknownRun):
			return "", err
		}
		r.tellMissing(l)
		return "", fail(protocol.ErrUnknownRun, "", "no run %q in %s", wanted, r.url)
	case 1:
		return found[0], nil
	}
	return "", ambiguous(wanted, found, nil)
}

// tellMissing says whose runs are not in the list of a hub.
func (r *remote) tellMissing(l client.List) {
	if len(l.Missing) > 0 {
		r.progress("the runs of %s are not listed: no answer from there", strings.Join(l.Missing, ", "))
	}
}

func idOf(raw json.RawMessage) (protocol.RunID, error) {
	var row struct{ ID protocol.RunID }
	err := json.Unmarshal(raw, &row)
	return row.ID, err
}
