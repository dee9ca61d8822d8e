package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"wf/hub/client"
	"wf/protocol"
)

// passedOn is the live output of the runs of a store: of those that this process drives, and of those that another
// process of this machine drives, from its socket. There is one connection for each of these while it is
// watched here, for all its subscribers.
//
//	own drive ─────────────────────► broadcast ─► subscribers
//	another process ─► its socket ─► pass ─┘
//
// Events are not passed on: subscribers have them from the store. What this process drives itself is never
// taken from a socket.
type passedOn struct {
	live *LiveSockets
	log  *slog.Logger

	mu      sync.Mutex
	watched map[protocol.RunID]*watchedRun
	stop    context.CancelFunc // ends looking for sockets; nil while no run is watched
	work    sync.WaitGroup
	failed  string // why sockets cannot be looked for, as the log has it
}

// watchedRun is a run that has subscribers.
type watchedRun struct {
	subscribers int
	at          protocol.Seq       // the newest event of which a socket told
	leave       context.CancelFunc // ends the connection; nil where there is none
	barren      int                // connections in a row to which nothing came
	pause       int                // looks that are left out
}

// pauseMost is how many looks are left out behind connections to which nothing came: a socket may have been left behind, or
// may not be that of a wf.
const pauseMost = 8

// errOwn is that this process drives a run.
var errOwn = errors.New("this process drives the run")

func newPassedOn(live *LiveSockets, log *slog.Logger) *passedOn {
	return &passedOn{live: live, log: log, watched: map[protocol.RunID]*watchedRun{}}
}

// Subscribe sends the deltas of a run to send until stop is called, whatever process of this machine drives it; see
// protocol.Deltas.
func (p *passedOn) Subscribe(run protocol.RunID, send func(protocol.LiveDelta)) (stop func()) {
	leave := p.live.said.Subscribe(run, send)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched[run] == nil {
		p.watched[run] = &watchedRun{}
	}
	p.watched[run].subscribers++
	if p.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		p.work.Go(func() { p.look(ctx) })
	}
	return func() {
		p.unwatch(run)
		leave()
	}
}

// unwatch leaves the process that drives a run with the last subscriber.
func (p *passedOn) unwatch(run protocol.RunID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[run]
	if w.subscribers--; w.subscribers > 0 {
		return
	}
	delete(p.watched, run)
	if w.leave != nil {
		w.leave()
		p.live.said.Lose(run) // a subscriber that is just coming may begin another connection
	}
	if len(p.watched) == 0 {
		p.stop()
		p.stop = nil
	}
}

// Close waits until all connections are gone, when there are no subscribers.
func (p *passedOn) Close() { p.work.Wait() }

// look connects to processes that drive watched runs until ctx ends. One look is one reading of a directory, however
// many runs are watched.
func (p *passedOn) look(ctx context.Context) {
	begin := runSockets(p.live.store.Beside())
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		runs, err := withSockets(begin)
		p.lookedAround(err)
		for _, run := range runs {
			p.connect(ctx, run)
		}
		select {
		case <-tick.C:
			p.leaveOwn()
		case <-ctx.Done():
			return
		}
	}
}

// lookedAround has the log say once why no sockets are seen.
func (p *passedOn) lookedAround(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != "" && why != p.failed {
		p.log.Warn("live output of runs that other processes drive is not shown", "why", describe(err))
	}
	p.failed = why
}

// leaveOwn ends the connections for runs that this process has begun to drive.
func (p *passedOn) leaveOwn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for run, w := range p.watched {
		if !p.live.said.Drives(run) {
			continue
		}
		w.at = 0 // the events of the own drive need not come
		if w.leave != nil {
			w.leave()
		}
	}
}

// connect begins a connection for a run with a socket, if it is watched and has none.
func (p *passedOn) connect(ctx context.Context, run protocol.RunID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[run]
	switch {
	case w == nil, w.leave != nil, ctx.Err() != nil, p.live.said.Drives(run):
		return
	case w.pause > 0:
		w.pause--
		return
	}
	ctx, w.leave = context.WithCancel(ctx)
	p.work.Go(func() { p.pass(ctx, run, w) })
}

// pass hands on what another process says of a run until one of the two ends it.
func (p *passedOn) pass(ctx context.Context, run protocol.RunID, w *watchedRun) {
	came := false
	// Behind unwatch there may be another connection for the same run: what comes here is then too late.
	with := func(do func()) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ctx.Err() == nil {
			came = true
			do()
		}
		return ctx.Err()
	}
	r := replayAt(run, func(ctx context.Context) (net.Conn, error) { return p.live.dialOther(ctx, run) })
	r.Cursor.Seq = w.at // what its steps have said until then may come again
	err := r.Overhear(ctx, client.Consumer{
		Delta: func(d protocol.LiveDelta) { _ = with(func() { p.live.said.Pass(d) }) }, // Overhear ends with ctx
		Event: func(e client.Event) error {
			return with(func() {
				w.at = e.Seq
				p.live.said.Settle(run, &e.Event)
			})
		},
		Complete: func(c client.Cursor) error { return with(func() { w.at = c.Seq }) },
	})
	p.log.Debug("live output of a run that another process drives has ended", "run", run, "why", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched[run] == w {
		p.live.said.Lose(run)
	}
	w.leave()
	w.leave = nil
	if errors.Is(err, protocol.ErrFutureCursor) {
		w.at = 0
	}
	if w.barren++; came {
		w.barren = 0
	}
	w.pause = min(1<<min(w.barren, pauseMost)-1, pauseMost)
}
