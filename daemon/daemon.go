package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"wf/api"
	"wf/cas"
	"wf/hub/replay"
	"wf/hub/schedule"
	"wf/hub/server"
	"wf/hub/web"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

// A Daemon drives the runs of a store, and answers for them over HTTP.
//
//	listeners ─► guard ─┐
//	hub ────────────────┴─► hub/server ─► service ─► supervisor ─► engine ─► store
//	                          └───► replay ◄── broadcast ◄──┘
//
// Start and Close frame its life; the handler may be served, to a hub too, in between.
type Daemon struct {
	Name       string // of the worker, as hubs list it
	Service    *service.Local
	Supervisor *Supervisor
	Log        *slog.Logger
	// NewCode makes a one-time code for a browser; nil where nothing listens for one. Set before Start.
	NewCode func() (api.Code, error)

	server *server.Server
	live   *LiveSockets
	replay *replay.Server
	clock  *schedule.Runner
	traces *exporter // nil without a collector
	told   sync.Map  // CIDs of definitions with schedules that wait for trust, and about which the log has a line
}

// Options of a Daemon.
type Options struct {
	Name      string       // "" is that of the machine
	Dir       string       // workspace of the runs that it starts; "" is the current directory
	Workflows []string     // directories of workflows that can be started; none is those of the project
	Log       *slog.Logger // not nil
	Alone     bool         // drives what it is given, and looks for nothing else
	OTLP      string       // URL of a collector that is sent the traces of runs as they end; "" is none
}

// New joins what a daemon is made of; nothing runs yet.
func New(u *compose.Setup, s *cas.Store, o Options) (*Daemon, error) {
	catalog, err := u.NewCatalog(o.Workflows, s.Dir())
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, protocol.ErrUsage.With("", "--dir %s is no directory", o.Dir)
	}
	live := NewLiveSockets(s)
	k := &Supervisor{s: s, log: o.Log, alone: o.Alone}
	k.note = func(run protocol.RunID) { u.Note(context.Background(), s, run); live.End(run) }
	k.e = u.Engine(s, func(n api.Update) {
		k.notice(n)
		live.Notice(n)
	})
	d := &Daemon{Name: o.Name, Supervisor: k, Log: o.Log, live: live, replay: &replay.Server{Feed: s, Deltas: &live.said},
		Service: &service.Local{Setup: u, Store: s, Engine: k.e, Keeper: k, Catalog: catalog, Dir: dir}}
	k.requests = d.Service.AwaitMoves
	if d.Name == "" {
		if d.Name, err = os.Hostname(); err != nil {
			d.Name = "wf"
		}
	}
	if o.OTLP != "" {
		if d.traces, err = newExporter(o.OTLP, os.Getenv, s, k.e, d.Service.Tracer(), o.Log); err != nil {
			return nil, err
		}
	}
	d.clock = &schedule.Runner{Jobs: d.Jobs, Start: d.Fire, Log: o.Log, Seen: &schedule.Seen{Path: filepath.Join(s.Dir(), Dir, "schedule.json")}}
	d.server = &server.Server{Service: d.Service, Feed: s, Name: d.Name, Version: u.Version, Replay: d.replay.WebSocket(), Events: d.replay.Events(), Page: web.Handler()}
	return d, nil
}

// Dir is the name of the directory, in a store or in the state of a user, that holds what a daemon
// keeps.
const Dir = "serve"

// Handler is the API without a guard: the server around it puts the identity of the client into each
// request (guard.With).
func (d *Daemon) Handler() http.Handler { return d.server.Handler() }

// Start begins to drive runs, and to start those that are due, unless the daemon is alone.
func (d *Daemon) Start() {
	d.server.NewCode = d.NewCode // before the first request, which may read it
	d.Supervisor.Start()
	if d.Supervisor.alone {
		return
	}
	if d.traces != nil {
		d.Supervisor.work.Go(func() { d.traces.run(d.Supervisor.ctx) })
	}
	d.Supervisor.work.Go(func() {
		if err := d.clock.Run(d.Supervisor.ctx); d.Supervisor.ctx.Err() == nil {
			d.Log.Error("schedules are no longer served", "why", err)
		}
	})
}

// Close suspends the runs that are driven, tells the watchers, and returns when all of it is
// recorded.
func (d *Daemon) Close() error {
	d.Supervisor.Close()
	d.Service.Settle()
	d.live.Close()
	return d.replay.Close()
}
