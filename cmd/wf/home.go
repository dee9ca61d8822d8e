package main

import (
	"context"
	"fmt"

	"wf/api"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/service/query"
)

// home is what wf alone shows: the last runs and what to do next, or the first steps.
func (a *app) home(ctx context.Context) error {
	missing, err := a.NoStoreYet()
	if err != nil {
		return err
	}
	if missing {
		return a.firstSteps()
	}
	return a.WithStore(ctx, func(s *cas.Store) error { return a.lastRuns(ctx, s) })
}

func (a *app) lastRuns(ctx context.Context, s *cas.Store) error {
	rows, unread, err := query.Runs(ctx, a.Engine(s, nil), api.Query{Limit: 8})
	if err != nil {
		return err
	}
	for _, err := range unread {
		a.Progress("warning: %s", messageOf(err))
	}
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.runs/v1", "items": rows})
	}
	if len(rows) == 0 {
		return a.firstSteps()
	}
	if err := a.RunTable(rows); err != nil {
		return err
	}
	v, err := a.Engine(s, nil).ViewWindow(ctx, rows[0].ID, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "\n  next   %s\n  more   wf --help\n", render.Next(v))
	return err
}

func (a *app) firstSteps() error {
	return a.Say(map[string]any{"schema": "wf.runs/v1", "items": []api.Row{}}, `No runs yet.

  wf demo                 watch a workflow repair a failing Go module, without a key
  wf init                 write a first workflow, here
  wf run workflow.yaml    run it
  wf --help               everything else
`)
}
