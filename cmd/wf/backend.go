package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/layout"
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
	rows, unread, err := b.a.rows(ctx, b.s, lsFlags{limit: q.Limit + 1, status: string(q.Status), tag: q.Tag, workflow: q.Workflow,
		all: q.All, text: strings.ToLower(q.Text), before: q.Before})
	if err != nil {
		return nil, "", err
	}
	for _, err := range unread {
		b.a.progress("warning: %s", messageOf(err))
	}
	var next protocol.RunID
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
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

// drives corrects what the lock of a run tells: the daemon is about to drive what it was given.
func (b *backend) drives(run protocol.RunID, status protocol.RunStatus, d *api.Driving) {
	if status == protocol.Running && b.keeper.drives(run) {
		driven := true
		*d = api.Driving{Driven: &driven}
	}
}

// Graph draws the workflow of a run with the path it took.
func (b *backend) Graph(ctx context.Context, run protocol.RunID) ([]byte, error) {
	st, err := b.e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = layout.Of(st.Program().Workflow).SVG(&out, pathTaken(st))
	return out.Bytes(), err
}

// pathTaken is what a run did, on the picture of its workflow. Where a role was entered
// several times its newest visit gives the status.
func pathTaken(st *engine.State) layout.Overlay {
	o := layout.Overlay{Visits: map[string]int{}, Taken: map[layout.Way]int{}, Status: map[string]string{}}
	for _, e := range st.Arrivals() {
		o.Taken[layout.Way{Edge: e.Edge, To: e.At, Limit: e.Via == protocol.ViaLimit}]++
	}
	for _, w := range st.Ways() {
		o.Taken[layout.Way(w.Way)] = w.Times
	}
	for _, r := range st.Roles() {
		switch r.Status {
		case "skipped":
			r.Status = "ok"
		case "retrying":
			r.Status = "running"
		case "parked":
			r.Status = "failed"
		}
		o.Status[r.Role], o.Visits[r.Role] = r.Status, r.Visits
	}
	return o
}

// sharedMessages is wf.messages/v1 with what the provider has seen before.
type sharedMessages struct {
	messagesJSON
	Resumes      *string `json:"resumes"`       // the visit whose conversation goes on, or null
	SharedPrefix int     `json:"shared_prefix"` // leading messages that were sent with it, byte for byte
}

// Messages is wf messages.
func (b *backend) Messages(ctx context.Context, run protocol.RunID, step string) (any, error) {
	now, before, name, err := promptsOf(ctx, b.e, ref{run: run, step: step})
	if err != nil {
		return nil, err
	}
	out := sharedMessages{messagesJSON: now.json()}
	if before != nil {
		out.Resumes = &name
		for out.SharedPrefix < min(len(now.messages), len(before.messages)) &&
			reflect.DeepEqual(now.messages[out.SharedPrefix], before.messages[out.SharedPrefix]) {
			out.SharedPrefix++
		}
	}
	return out, nil
}

// visitDiff compares the outputs of two visits of a role.
type visitDiff struct {
	Schema   string         `json:"schema"`
	Run      protocol.RunID `json:"run"`
	Step     string         `json:"step"`
	Previous *string        `json:"previous"` // null for the first visit: all of it is new
	Equal    bool           `json:"equal"`
	Added    int            `json:"added"` // lines
	Removed  int            `json:"removed"`
	Changed  []string       `json:"changed"` // what differs, in words
	Unified  string         `json:"unified"` // of the texts
}

// Diff compares a visit with the one of the same role, and the same item, before it.
func (b *backend) Diff(ctx context.Context, run protocol.RunID, step string) (any, error) {
	v, err := b.e.Outline(ctx, run)
	if err != nil {
		return nil, err
	}
	now, err := stepOf(v, step)
	if err != nil {
		return nil, err
	}
	before := previous(v, now)
	for _, s := range []**api.Step{&now, &before} {
		if *s == nil {
			continue
		}
		one, err := b.e.ViewStep(ctx, run, (*s).ID)
		if err != nil {
			return nil, err
		}
		if *s, err = stepOf(one, (*s).ID); err != nil {
			return nil, err
		}
	}
	out := visitDiff{Schema: "wf.diff/v1", Run: run, Step: step, Changed: []string{}}
	if before == nil {
		if now.Text != "" {
			out.Unified = udiff.Unified("/dev/null", now.ID, "", now.Text+"\n")
			out.Added, _ = counts(out.Unified)
		}
		return out, nil
	}
	d := changedStep(before, now)
	out.Previous, out.Changed, out.Unified = &before.ID, d.Changed, d.text
	out.Added, out.Removed = counts(d.text)
	out.Equal = before.Text == now.Text && bytes.Equal(before.Output, now.Output) && before.Status == now.Status
	return out, nil
}

// previous is the newest visit of the same role and item before a visit, or nil.
func previous(v *api.Run, now *api.Step) *api.Step {
	var before *api.Step
	for _, s := range v.Steps {
		if s == now {
			return before
		}
		sameItem := s.Item == nil && now.Item == nil || s.Item != nil && now.Item != nil && *s.Item == *now.Item
		if s.Role == now.Role && sameItem {
			before = s
		}
	}
	return nil
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
