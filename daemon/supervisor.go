package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/service/compose"
)

// A Supervisor drives the runs of a daemon: those it is given, and those it finds open.
//
//	keep ─► drive ─► final, suspended     let go
//	          ▲  └─► waiting ─► due │ answered by another process
//	          └──────────────────────┘
//
// Start and Stop frame its life.
type Supervisor struct {
	s    engine.Store
	e    *engine.Engine
	log  *slog.Logger
	note func(protocol.RunID) // after each drive
	// requests returns when what requests of this process have recorded until now was given to Keep; nil where
	// there are none. Else the supervisor might take up a run under its own name that a request is about to.
	requests func()
	// seen is told of a run that was read for another reason: where it stands. nil is for none.
	seen func(protocol.RunID, *rules.State)

	alone  bool          // drives what it is given, and looks for nothing else
	relief time.Duration // 0 is relief, when a full process takes some more
	most   int           // how many runs it drives at once of a store that other processes drive too; 0 is mostDrives

	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu        sync.Mutex
	runs      map[protocol.RunID]*managed
	unmanaged map[protocol.RunID]unmanaged // that may be left to the supervisor; see adopt.go
	restless  map[protocol.RunID]bool      // of these at least those that are still to be looked at
	unread    map[protocol.RunID]bool      // that wait, and could not be read
	foreign   map[protocol.RunID]bool      // that came from elsewhere, and wait for wf store adopt
	driving   int                          // runs that are driven
	drives    uint64                       // that have ended
	end       chan struct{}                // closed when the next one has; nil where no caller waits for it

	moves cas.MovedRuns // of follow

	looked chan struct{} // closed once all runs of the store were looked at
	once   sync.Once     // closes it
}

// managed is a run that the supervisor drives, or waits with.
type managed struct {
	driving bool
	again   *engine.DriveOptions    // drive once more when this drive ends, if the run waits then
	resume  *engine.DriveOptions    // drive once more when this drive ends, also if it is suspended
	moved   chan struct{}           // closed at the first event of a drive; nil where no caller waits for it
	halt    context.CancelCauseFunc // of this drive
	over    chan struct{}           // closed when this drive has ended
	head    protocol.Link           // where it waits
	due     int64                   // when its first timer is due, unix µs; 0 is never
	timer   *time.Timer
}

// Start begins to keep; open runs of the store are looked for in the background.
func (k *Supervisor) Start() {
	k.ctx, k.stop = context.WithCancelCause(context.Background())
	k.runs, k.unmanaged, k.foreign = map[protocol.RunID]*managed{}, map[protocol.RunID]unmanaged{}, map[protocol.RunID]bool{}
	k.restless, k.unread, k.moves = map[protocol.RunID]bool{}, map[protocol.RunID]bool{}, cas.MovedRuns{Store: k.s}
	if q := k.queue(); q != nil {
		k.work.Go(func() { k.serve(q) })
		return
	}
	k.work.Go(k.follow)
}

// lookedAround notes that all runs of the store were looked at, and those go on that are to.
func (k *Supervisor) lookedAround() { k.once.Do(func() { close(k.looked) }) }

// see passes on where a run stands.
func (k *Supervisor) see(run protocol.RunID, st *rules.State) {
	if k.seen != nil && st != nil {
		k.seen(run, st)
	}
}

// driven is how many runs this process drives.
func (k *Supervisor) driven() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.driving
}

// Close suspends what is driven, and returns when all of that is recorded.
func (k *Supervisor) Close() {
	k.mu.Lock() // so that nothing begins while the end is waited for
	if k.alone {
		k.stop(ErrScreenLeft)
	} else {
		k.stop(protocol.ErrServeStopped)
	}
	k.mu.Unlock()
	k.work.Wait()
}

// Keep drives a run until it is over or waits. A run that is driven here already is driven once
// more afterwards.
//
// Of a store that says which runs are due it is left to that where this process drives as many as it may: it, or another process, is given the run.
func (k *Supervisor) Keep(run protocol.RunID, o engine.DriveOptions) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.runs[run]; (r == nil || !r.driving) && k.queue() != nil && k.room() == 0 {
		return
	}
	k.begin(run, o)
}

// begin is Keep; the caller holds mu.
func (k *Supervisor) begin(run protocol.RunID, o engine.DriveOptions) *managed {
	delete(k.unmanaged, run)
	r := k.runs[run]
	if r == nil {
		r = &managed{}
		k.runs[run] = r
	}
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if r.driving {
		r.again = &o
		return r
	}
	if k.ctx.Err() != nil {
		return r
	}
	r.driving = true
	k.driving++
	ctx, halt := context.WithCancelCause(k.ctx)
	r.halt, r.over = halt, make(chan struct{})
	over := r.over
	k.work.Go(func() {
		defer close(over)
		defer halt(nil)
		k.drive(ctx, run, r, o)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.driving--
		if k.drives++; k.end != nil {
			close(k.end)
			k.end = nil
		}
	})
	return r
}

// ended is how many drives have ended; next is closed when another one has.
func (k *Supervisor) ended() (n uint64, next <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end == nil {
		k.end = make(chan struct{})
	}
	return k.drives, k.end
}

// Resume is Keep for a run of a status, and returns when the run has moved: nil when an event of
// it was recorded, or when there was nothing to do; else why it cannot be driven.
func (k *Supervisor) Resume(ctx context.Context, run protocol.RunID, status protocol.RunStatus, o engine.DriveOptions) error {
	k.mu.Lock()
	drives := func() bool { return k.runs[run] != nil && k.runs[run].driving }
	if !drives() {
		k.mu.Unlock()
		err := k.s.Undriven(ctx, run) // others need not wait for a database
		k.mu.Lock()
		if err != nil && !drives() {
			k.mu.Unlock()
			return err
		}
	}
	if drives() {
		if status != protocol.Suspended {
			k.mu.Unlock()
			return protocol.ErrRunLive.With("it goes on already", "this process drives run %s", run)
		}
		// Its drive is about to end: the suspension is on disk.
		r, moved := k.runs[run], make(chan struct{})
		r.signal()
		r.resume, r.moved = &o, moved
		k.mu.Unlock()
		return waitFor(ctx, moved)
	}
	moved := make(chan struct{})
	r := k.begin(run, o)
	if status == protocol.Queued { // it moves when its turn comes
		k.mu.Unlock()
		return nil
	}
	r.moved = moved
	k.mu.Unlock()
	return waitFor(ctx, moved)
}

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drives reports whether this process drives a run, or is about to.
func (k *Supervisor) Drives(run protocol.RunID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.runs[run]
	return r != nil && r.driving
}

// notice is called for every event of the engine.
func (k *Supervisor) notice(n api.Update) {
	if n.Entry == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.runs[n.Run]; r != nil {
		r.signal()
	}
}

// Suspend ends the drive of a run, and returns when that is recorded. A run that is not driven
// here is left alone; one that another process drives is an error wrapping protocol.ErrRunLive.
func (k *Supervisor) Suspend(ctx context.Context, run protocol.RunID) error {
	k.mu.Lock()
	r := k.runs[run]
	if r == nil || !r.driving {
		k.mu.Unlock()
		return k.s.Undriven(ctx, run)
	}
	r.again = nil
	halt, over := r.halt, r.over
	k.mu.Unlock()
	by := compose.User()
	if c, ok := api.CallerOf(ctx); ok && c.Name != "" {
		by = c.Name
	}
	halt(fmt.Errorf("suspended by %s", by))
	return waitFor(ctx, over)
}

func (k *Supervisor) awaitRequests() {
	if k.requests != nil {
		k.requests()
	}
}

// signal wakes the caller that waits for the run to move; the caller of it holds mu.
func (r *managed) signal() {
	if r.moved != nil {
		close(r.moved)
		r.moved = nil
	}
}

func (k *Supervisor) drive(ctx context.Context, run protocol.RunID, r *managed, o engine.DriveOptions) {
	for {
		st, err := k.e.Drive(ctx, run, o)
		k.note(run)
		switch {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, protocol.ErrRunLive):
			k.log.Info("another process drives the run", "run", run)
		case errors.Is(err, protocol.ErrFenced):
			k.log.Warn("another process has taken the run over", "run", run, "why", describe(err))
		case errors.Is(err, protocol.ErrLacks):
			k.log.Info("the run waits for another worker", "run", run, "why", describe(err))
		case errors.Is(err, protocol.ErrRestoreOpen):
			k.log.Info("the files of the workspace are being restored: the run goes on behind that", "run", run, "why", describe(err))
		default:
			k.log.Error("the run cannot be driven", "run", run, "why", describe(err))
		}
		k.putOff(run, err)
		k.awaitRequests()
		k.see(run, st)
		next, more := k.settle(run, r, st, err)
		if !more {
			return
		}
		o = next
	}
}

// settle decides what follows a drive: another one, if a client asked for it or answered just
// then, or to wait, or to let the run go. What another process commits from here on is a change
// that follow sees.
func (k *Supervisor) settle(run protocol.RunID, r *managed, st *rules.State, failed error) (next engine.DriveOptions, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.resume != nil && k.ctx.Err() == nil && (errors.Is(failed, context.Canceled) || failed == nil && !st.Status().Final()) {
		delete(k.runs, run) // a suspension ends the context of its drive
		k.begin(run, *r.resume).moved = r.moved
		return next, false
	}
	r.signal()
	again := r.again
	r.again = nil
	queued := k.queue() != nil
	if failed != nil || st.Status() != protocol.Waiting || k.ctx.Err() != nil || queued && again == nil {
		delete(k.runs, run)
		if queued {
			return next, false // the store knows when it is due
		}
		if !k.alone { // its head may not move again: it is looked at once more, as another process may leave it waiting
			k.leaves(run, unmanaged{since: time.Now()})
		}
		return next, false
	}
	if again != nil {
		return *again, true
	}
	head, seq, err := k.s.Tip(k.ctx, run)
	switch {
	case err != nil:
		k.unread[run] = true
		k.log.Error("the run cannot be read; wf verify tells more", "run", run, "why", err)
	case seq != st.Seq:
		return engine.DriveOptions{By: "wf serve"}, true
	}
	r.driving, r.head = false, head
	k.await(run, r, st)
	return next, false
}

// await notes that a run waits, and wakes at its first timer. The caller holds mu.
func (k *Supervisor) await(run protocol.RunID, r *managed, st *rules.State) {
	r.due = engine.FirstTimer(st)
	if r.due > 0 && k.ctx.Err() == nil {
		r.timer = time.AfterFunc(time.UnixMicro(r.due).Sub(k.now()), func() { k.Keep(run, engine.DriveOptions{By: "wf serve"}) })
	}
}

// now is the time by the clock of the engine.
func (k *Supervisor) now() time.Time {
	if k.e.Now != nil {
		return k.e.Now()
	}
	return time.Now()
}

// ErrScreenLeft is protocol.ErrServeStopped where no daemon was: the screen of a chat or of wf tui drove the run.
var ErrScreenLeft = &protocol.Error{Code: protocol.ErrServeStopped.Code, Message: "its screen was left", Hint: "wf chat RUN or wf resume goes on"}

// describe is why a drive ended, for the log.
func describe(err error) string {
	if hint := protocol.HintOf(err); hint != "" {
		return fmt.Sprintf("%v (%s)", err, hint)
	}
	return err.Error()
}
