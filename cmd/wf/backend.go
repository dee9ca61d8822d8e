package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/hub/server"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// A backend answers the API of a daemon: it reads the store, and moves runs through a keeper.
type backend struct {
	a       *app
	s       *cas.Store
	e       *engine.Engine
	keeper  *keeper
	catalog compose.Catalog
	dir     string   // workspace of the runs it starts
	told    sync.Map // CIDs of definitions with schedules that wait for trust, and about which the log has a line

	// moving is held for reading from before a commit by which a run goes on until the keeper has
	// the run. Suspend waits for that: else it would find a run that moves, and no drive to stop.
	moving sync.RWMutex
}

var _ server.Backend = (*backend)(nil)

// Workflows lists what lies in the served directories.
func (b *backend) Workflows(context.Context) ([]api.Workflow, error) {
	found, err := b.catalog.List()
	out := make([]api.Workflow, len(found))
	for i, f := range found {
		out[i] = f.Entry()
	}
	return out, err
}

// Runs is wf ls, with one more run than asked for to see whether there are others.
func (b *backend) Runs(ctx context.Context, q api.Query) ([]any, protocol.RunID, error) {
	limit := q.Limit
	q.Limit++
	rows, unread, err := query.Runs(ctx, b.e, q)
	if err != nil {
		return nil, "", err
	}
	for _, err := range unread {
		b.a.progress("warning: %s", messageOf(err))
	}
	var next protocol.RunID
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[len(rows)-1].ID
	}
	items := make([]any, len(rows))
	for i := range rows {
		b.drives(rows[i].ID, rows[i].Status, &rows[i].Driving)
		items[i] = rows[i]
	}
	return items, next, nil
}

// Run is wf show.
func (b *backend) Run(ctx context.Context, run protocol.RunID, w api.Window) (any, error) {
	v, err := b.e.ViewWindow(ctx, run, api.Window(w))
	if err == nil {
		b.drives(run, v.Status, &v.Driving)
	}
	return v, err
}

// Graph draws the workflow of a run with the path it took.
func (b *backend) Graph(ctx context.Context, run protocol.RunID) ([]byte, error) {
	return query.Graph(ctx, b.e, run)
}

// Messages is wf messages.
func (b *backend) Messages(ctx context.Context, run protocol.RunID, step string) (any, error) {
	return query.Messages(ctx, b.e, run, step)
}

// Diff compares a visit with the one of the same role, and the same item, before it.
func (b *backend) Diff(ctx context.Context, run protocol.RunID, step string) (any, error) {
	return query.VisitDiff(ctx, b.e, run, step)
}

// drives corrects what the lock of a run tells: the daemon is about to drive what it was given.
func (b *backend) drives(run protocol.RunID, status protocol.RunStatus, d *api.Driving) {
	if status == protocol.Running && b.keeper.drives(run) {
		driven := true
		*d = api.Driving{Driven: &driven}
	}
}

// Verify is wf verify.
func (b *backend) Verify(ctx context.Context, run protocol.RunID) (any, error) {
	if _, _, err := b.s.Tip(ctx, run); err != nil {
		return nil, err
	}
	o := cas.VerifyOptions{Run: run}
	state := cas.StateDir(os.Getenv)
	if state != "" {
		var err error
		if o.LastSeen, err = cas.LoadWitness(state, b.s.Dir()); err != nil {
			return nil, err
		}
	}
	r, err := cas.Verify(ctx, b.s, o)
	if err == nil && r.OK {
		err = b.a.Refold(ctx, b.s, &r, false)
	}
	if err != nil {
		return nil, err
	}
	if r.OK && state != "" {
		if err := cas.SeeFound(ctx, state, b.s.Dir(), r.Heads); err != nil {
			return nil, fmt.Errorf("the heads were not noted outside of the store: %w", err)
		}
	}
	return listed(r), nil
}

// Cost is wf cost.
func (b *backend) Cost(ctx context.Context, run protocol.RunID, by string) (any, error) {
	table, err := b.a.Prices()
	if err != nil {
		return nil, err
	}
	return query.Cost(ctx, b.s, run, by, table)
}

// given are the inputs of a request as a program reads them.
func given(fields map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		out[name] = value
	}
	return out
}
