package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"wf/cas"
	"wf/engine"
	"wf/hub/replay"
	"wf/hub/schedule"
	"wf/hub/server"
	"wf/hub/web"
	"wf/protocol"
)

// A daemon drives the runs of a store, and answers for them over HTTP.
//
//	listeners ─► guard ─┐
//	hub ────────────────┴─► api ─► backend ─► keeper ─► engine ─► store
//	                         └───► replay ◄── broadcast ◄──┘
//
// Start and Close frame its life; the handler may be served, to a hub too, in between.
type daemon struct {
	name    string // of the agent, as hubs list it
	store   *cas.Store
	api     *server.Server
	keeper  *keeper
	live    *liveSockets
	replay  *replay.Server
	backend *backend
	clock   *schedule.Runner
	log     *slog.Logger
}

// newDaemon joins what a daemon is made of; nothing runs yet.
func (a *app) newDaemon(s *cas.Store, f serveFlags, log *slog.Logger) (*daemon, error) {
	catalog, err := a.NewCatalog(f.workflows, s.Dir())
	if err != nil {
		return nil, err
	}
	dir, _, err := places("", f.dir)
	if err != nil {
		return nil, err
	}
	live := newLiveSockets(s)
	k := &keeper{s: s, log: log}
	k.note = func(run protocol.RunID) { a.Note(context.Background(), s, run); live.end(run) }
	e := a.Engine(s, func(n engine.Notice) {
		k.notice(n)
		live.notice(n)
	})
	k.e = e
	b := &backend{a: a, s: s, e: e, keeper: k, catalog: catalog, dir: dir}
	clock := &schedule.Runner{Jobs: b.scheduled, Start: b.fire, Log: log, Seen: &schedule.Seen{Path: filepath.Join(s.Dir(), serveDir, "schedule.json")}}
	d := &daemon{name: f.name, clock: clock, store: s, keeper: k, backend: b, log: log, live: live, replay: &replay.Server{Feed: s, Deltas: &live.said}}
	if d.name == "" {
		if d.name, err = os.Hostname(); err != nil {
			d.name = "wf"
		}
	}
	d.api = &server.Server{Backend: b, Feed: s, Name: d.name, Version: version(), Replay: d.replay.WebSocket(), Events: d.replay.Events(), Page: web.Handler()}
	return d, nil
}

// handler is the API without a guard: whoever serves it says who asks (guard.As, guard.With).
func (d *daemon) handler() http.Handler { return d.api.Handler() }

// start begins to drive runs, and to start those that are due, unless it serves a screen alone.
func (d *daemon) start() {
	d.keeper.start()
	if d.keeper.alone {
		return
	}
	d.keeper.work.Go(func() {
		if err := d.clock.Run(d.keeper.ctx); d.keeper.ctx.Err() == nil {
			d.log.Error("schedules are no longer served", "why", err)
		}
	})
}

// close suspends the runs that are driven, tells the watchers, and returns when all of it is
// recorded.
func (d *daemon) close() error {
	d.keeper.close()
	d.backend.a.Settle()
	d.live.close()
	return d.replay.Close()
}
