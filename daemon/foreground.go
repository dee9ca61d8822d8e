package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/store"
)

// A Foreground is the service of a command: what it moves is driven by Follow, in the process of the user, who
// sees it meanwhile and suspends it by ending the context. Other runs are followed from outside.
//
//	Start, Answer, Resume, Fork ─► moves ─► Follow ─► engine ─► store
//	a run that was not moved here ────────► Follow ─► socket of the process that drives it, or the store
type Foreground struct {
	*service.Local
	moves *moves
}

var (
	_ api.Service  = (*Foreground)(nil)
	_ api.Follower = (*Foreground)(nil)
	_ api.Follower = (*Daemon)(nil)
)

// NewForeground is that of a store. Catalog and Dir may be set before its first use.
func NewForeground(u *compose.Setup, s store.Store) *Foreground {
	m := &moves{of: map[protocol.RunID]move{}}
	return &Foreground{Local: &service.Local{Setup: u, Store: s, Engine: u.Engine(s, nil), Keeper: m}, moves: m}
}

// Begin begins a run of any definition. With a request id that was used before it starts nothing, and fresh is
// false.
func (f *Foreground) Begin(ctx context.Context, x engine.Launch) (run protocol.RunID, fresh bool, err error) {
	if run, fresh, err = f.Engine.Begin(ctx, x); err == nil && fresh {
		f.Note(ctx, f.Store, run)
		f.moves.Keep(run, engine.DriveOptions{By: compose.User()})
	}
	return run, fresh, err
}

// GoOn has Follow drive a run that was moved in another way.
func (f *Foreground) GoOn(run protocol.RunID) {
	f.moves.Keep(run, engine.DriveOptions{By: compose.User()})
}

// Answer answers a waiting visit; Follow goes on with the run.
func (f *Foreground) Answer(ctx context.Context, run protocol.RunID, x api.Answer) (string, error) {
	step, err := f.Local.Answer(ctx, run, x)
	if err == nil {
		f.Note(ctx, f.Store, run)
	}
	return step, err
}

// Cancel ends a run. Follow goes on with it where it closes; sub-workflows of one that does not have closed when Cancel
// returns.
func (f *Foreground) Cancel(ctx context.Context, run protocol.RunID, reason string) error {
	closing, err := f.Engine.CancelSoon(ctx, run, compose.User(), reason)
	if slices.Contains(closing, run) {
		f.GoOn(run)
	} else {
		err = errors.Join(err, f.Engine.CloseRuns(ctx, closing, compose.User()))
	}
	if err == nil {
		f.Note(ctx, f.Store, run)
	}
	return err
}

// notifyTime is how long a command delivers notifications at its end.
const notifyTime = 5 * time.Second

// Notify delivers the notifications of a run that this process drove, for at most notifyTime, or none of them once
// ctx has ended. It counts those that are left to a daemon.
func (f *Foreground) Notify(ctx context.Context, run protocol.RunID) (left int, err error) {
	d, err := f.Notifier(f.Store, f.Engine, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithTimeout(ctx, notifyTime)
	defer stop()
	return d.Flush(ctx, run)
}

// moves are the runs that Follow is to drive: it is the Keeper of a process that drives them in front of its user.
type moves struct {
	mu sync.Mutex
	of map[protocol.RunID]move
}

// move says how a run is driven.
type move struct {
	engine.DriveOptions
	shared bool // another process may as well go on with the run
}

// Keep has Follow drive a run, unless another process does.
func (m *moves) Keep(run protocol.RunID, o engine.DriveOptions) { m.put(run, move{o, true}) }

// Resume has Follow drive a run. Where another process does, Follow returns an error wrapping protocol.ErrRunLive.
func (m *moves) Resume(_ context.Context, run protocol.RunID, _ protocol.RunStatus, o engine.DriveOptions) error {
	m.put(run, move{o, false})
	return nil
}

// Drives is false: what is not followed is not driven.
func (m *moves) Drives(protocol.RunID) bool { return false }

// Suspend has Follow not drive a run.
func (m *moves) Suspend(_ context.Context, run protocol.RunID) error {
	m.take(run)
	return nil
}

func (m *moves) put(run protocol.RunID, x move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of[run] = x
}

// take is how a run is to be driven; ok is false for one that was not moved.
func (m *moves) take(run protocol.RunID) (x move, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok = m.of[run]
	delete(m.of, run)
	return x, ok
}
