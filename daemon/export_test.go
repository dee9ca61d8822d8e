package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"wf/api"
	"wf/engine"
	"wf/engine/rules"
	"wf/hub/lists"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/metrics"
	"wf/protocol"
	"wf/store"
)

// ToldToHubs are the runs of a daemon as a hub hears of them.
func ToldToHubs(ctx context.Context, d *Daemon) ([]relay.Run, error) {
	return (&hubView{hubStore: newHubStore(d.Service, d.Supervisor)}).Runs(ctx)
}

// Recount has a daemon look at its store now, as it does every few seconds.
func Recount(ctx context.Context, d *Daemon) error { return d.census.look(ctx) }

// StartUncounted is Start of a daemon that counts its runs when Recount is called, and only then.
func StartUncounted(d *Daemon) {
	d.meters.know(d.Service.Catalog, d.Log)
	d.Supervisor.Start()
}

// FoldsOf counts the runs that a daemon folds to count them; it is called before the daemon is started.
func FoldsOf(d *Daemon) (folds func() int64) {
	var n atomic.Int64
	fold := d.census.fold
	d.census.fold = func(ctx context.Context, run protocol.RunID) (*rules.State, error) {
		n.Add(1)
		return fold(ctx, run)
	}
	return n.Load
}

// Notice passes an update to the meters and the log of a process.
func Notice(r *metrics.Registry, log *slog.Logger, price func(protocol.Usage) *int64, workflows ...string) func(api.Update) {
	m := newMeters(r, "devel", price)
	m.names.Allow(workflows...)
	return func(u api.Update) {
		m.notice(u)
		runLog{log}.notice(u)
	}
}

// Notified counts what came of attempts to deliver notifications.
func Notified(r *metrics.Registry) func(protocol.Data) { return newMeters(r, "devel", nil).notified }

// NewProbe is a probe under a clock.
func NewProbe(started <-chan struct{}, look func(context.Context) error, now func() time.Time) (ready func(context.Context) error, end func()) {
	p := newProbe(started, look)
	p.now = now
	return p.ready, p.end
}

// QueueOf is the queue of a hub, HandlerOf what it answers, without a guard.
func QueueOf(h *Hub) queue.Queue    { return h.kept.Queue }
func HandlerOf(h *Hub) http.Handler { return h.relay.Handler() }

// Moved is what a hub tells a daemon that has a run of another worker.
func Moved(d *Daemon, run protocol.RunID, to string) { d.moved(run, to) }

// NewSupervisor is one without a service around it.
func NewSupervisor(s engine.Store, e *engine.Engine, log *slog.Logger) *Supervisor {
	return &Supervisor{s: s, e: e, log: log, note: func(protocol.RunID) {}, looked: make(chan struct{})}
}

// Kept is how many runs a supervisor has in memory.
func (k *Supervisor) Kept() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.runs) + len(k.unmanaged) + len(k.foreign)
}

// AtMost bounds how many runs a supervisor drives at once.
func (k *Supervisor) AtMost(n int) { k.most = n }

// Driven is how many runs a supervisor drives.
func (k *Supervisor) Driven() int { return k.driven() }

// RelieveAfter has a full supervisor take some more after another time.
func (k *Supervisor) RelieveAfter(d time.Duration) { k.relief = d }

// NewLists is what a daemon tells of the lists of a store.
func NewLists(s store.Store, service api.Service, log *slog.Logger) *lists.Board {
	return newLists(s, service, log)
}

// LookAtTriggers has a daemon look at its schedules and webhooks now, as it does every few seconds; LeaveTriggers has another one tell of them.
func LookAtTriggers(ctx context.Context, d *Daemon) { d.watch.look(ctx) }

// LeaveTriggers: see LookAtTriggers.
func LeaveTriggers(d *Daemon) {
	for _, in := range d.watch.known {
		in.leave()
	}
}
