package daemon

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"wf/api"
	"wf/hub/hook"
	"wf/hub/replay"
	"wf/hub/schedule"
	"wf/hub/server"
	"wf/hub/web"
	"wf/metrics"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/service/notify"
	"wf/store"
)

// A Daemon drives the runs of a store, and answers for them over HTTP.
//
//	listeners ─► guard ─┐
//	hub ────────────────┴─► hub/server ─► service ─► supervisor ─► engine ─► store
//	                          └───► replay ◄── broadcast ◄──┘ ◄── sockets of other processes
//
// Start and Close frame its life; the handler may be served, to a hub too, in between.
type Daemon struct {
	Name       string // of the worker, as hubs list it
	Service    *service.Local
	Supervisor *Supervisor
	Log        *slog.Logger
	// NewCode makes a one-time code for a browser of the client whose request the context is of; nil where nothing
	// listens for one. Set before Start.
	NewCode func(context.Context) (api.Code, error)

	// Metrics are what GET /metrics shows. More may be registered before Start.
	Metrics *metrics.Registry

	server *server.Server
	meter  *server.Meter
	meters *meters
	census *census
	probe  *probe
	live   *LiveSockets
	passed *passedOn
	replay *replay.Server
	clock  *schedule.Runner
	notify *notify.Deliverer
	traces *exporter // nil without a collector
	hooks  hooks
	events events
	watch  *triggerWatch
	told   sync.Map // what keeps schedules and webhooks from being served, and about which the log has a line
}

// Options of a Daemon.
type Options struct {
	Name      string       // "" is that of the machine
	Dir       string       // workspace of the runs that it starts; "" is the current directory
	Workflows []string     // directories of workflows that can be started; none is those of the project
	Log       *slog.Logger // not nil
	Alone     bool         // drives what it is given, and looks for nothing else
	Drives    int          // how many runs of a database it drives at once; 0 is 256
	OTLP      string       // URL of a collector that is sent the traces of runs as they end; "" is none
}

// New joins what a daemon is made of; nothing runs yet.
func New(u *compose.Setup, s store.Store, o Options) (*Daemon, error) {
	catalog, err := u.NewCatalog(o.Workflows, s.Name())
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
	passed := newPassedOn(live, o.Log)
	d := &Daemon{Name: o.Name, Log: o.Log, live: live, passed: passed, replay: &replay.Server{Feed: s, Deltas: passed}}
	k := &Supervisor{s: s, log: o.Log, alone: o.Alone, most: o.Drives, looked: make(chan struct{})}
	k.note = func(run protocol.RunID) { u.Note(context.Background(), s, run); live.End(run); d.clock.Wake() }
	all := new(metrics.Registry)
	var m *meters
	lines := runLog{o.Log}
	k.e = u.Engine(s, func(n api.Update) {
		m.notice(n)
		lines.notice(n)
		k.notice(n)
		live.Notice(n)
	})
	if k.queue() != nil {
		k.e.Patience = time.Second // no drive stays for what the store tells of
	}
	m = newMeters(all, u.Version, k.e.Price)
	s.Observe(m.stored)
	c := newCensus(s, k.e, k.Drives, o.Log)
	c.register(m)
	k.seen = c.see
	all.GaugeFunc("wf_runs_driven", "Runs that this process drives.", func(emit func(float64, ...string)) { emit(float64(k.driven())) })
	d.Metrics, d.meter, d.meters, d.census = all, server.NewMeter(all, o.Log), m, c
	d.Supervisor, d.Service = k, &service.Local{Setup: u, Store: s, Engine: k.e, Keeper: k, Catalog: catalog, Dir: dir}
	k.requests = d.Service.AwaitMoves
	d.replay.Lists = newLists(s, d.Service, o.Log)
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
	d.clock = &schedule.Runner{Jobs: d.Jobs, Start: d.Fire, Open: d.open, Log: o.Log, Seen: &schedule.Seen{In: seenIn(s)}}
	if d.notify, err = u.Notifier(s, k.e, o.Log); err != nil {
		return nil, err
	}
	d.notify.Notice, d.notify.Dir = m.notified, dir
	if !store.IsDatabase(s.Name()) {
		d.notify.Key = d.sealTriggers
	}
	d.watch = newTriggerWatch(d, all)
	d.Service.Amend = d.watch.amend
	d.events = events{o: hook.SpoolOptions{Dir: eventsIn(s.Beside()), Log: o.Log, Count: m.hooked, Now: time.Now}, key: func() ([]byte, error) { return u.KeptSeal(eventsKey) },
		names: map[string]named{}, read: map[string]compose.Definition{}}
	d.events.register(all)
	d.probe = newProbe(k.looked, func(ctx context.Context) error {
		_, err := s.Head(ctx, "")
		return err
	})
	d.server = &server.Server{Service: d.Service, Feed: s, Forks: forksOf(s), Name: d.Name, Version: u.Version, Replay: d.replay.WebSocket(), Events: d.replay.Events(), Page: web.Handler(),
		Metrics: all, Ready: d.probe.ready, Log: d.Log,
		Hooks: &hook.Receiver{Find: d.hook, Log: o.Log}}
	return d, nil
}

// forksOf tells the sets of runs that share events with one from each other: one that is deleted and one that is made leave as many, and
// what a fork was forked from may come later.
func forksOf(s store.Store) func(context.Context, protocol.RunID) (string, error) {
	return func(ctx context.Context, run protocol.RunID) (string, error) {
		base, _, err := s.Base(ctx, run)
		if err != nil {
			return "", err
		}
		forks, err := s.Forks(ctx, run)
		if err != nil || len(forks) == 0 && base == "" {
			return "", err
		}
		h := fnv.New64a()
		fmt.Fprintln(h, base)
		for _, f := range forks {
			fmt.Fprintln(h, f.Run)
		}
		return fmt.Sprintf("%x", h.Sum64()), nil
	}
}

// Dir is the name of the directory, in a store or in the state of a user, that holds what a daemon
// keeps.
const Dir = "serve"

// sealTriggers is the key that seals what is known of triggers.
func (d *Daemon) sealTriggers() ([]byte, error) { return d.Service.KeptSeal(triggersKey) }

// Handler is the API without a guard: the server around it puts the identity of the client into each
// request (guard.With).
func (d *Daemon) Handler() http.Handler { return d.meter.Wrap(d.server.Handler()) }

// Start begins to drive runs, and to start those that are due, unless the daemon is alone.
func (d *Daemon) Start() {
	d.server.NewCode = d.NewCode // before the first request, which may read it
	if d.Supervisor.alone {
		d.Supervisor.Start()
		return
	}
	known := d.meters.know(d.Service.Catalog, d.Log) // before the first run
	d.Supervisor.Start()
	d.Supervisor.work.Go(func() { known(d.Supervisor.ctx) })
	d.Supervisor.work.Go(func() { d.census.run(d.Supervisor.ctx, d.Supervisor.looked) })
	d.Supervisor.work.Go(func() { d.notify.Serve(d.Supervisor.ctx) })
	d.Supervisor.work.Go(func() { d.watch.run(d.Supervisor.ctx) })
	d.Supervisor.work.Go(func() { d.retains(d.Supervisor.ctx) })
	d.startEvents()
	d.Supervisor.work.Go(d.indexes)
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
	d.probe.end()
	left, err := d.events.close()
	if left > 0 {
		d.Log.Warn("events of webhooks wait: the next wf serve begins their runs", "events", left)
	}
	d.Supervisor.Close()
	d.Service.Settle()
	d.live.Close()
	err = errors.Join(err, d.replay.Close())
	d.passed.Close()
	return err
}
