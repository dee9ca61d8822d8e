package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"wf/protocol"
	"wf/roles"
)

// heldMost is how many held visits of a run take no place of Engine.Parallel: each has a conversation in memory.
const heldMost = 256

// places is how many more visits may be performed, beside those that b begins. Those that are held take none, nor do those
// that wait for a slot of a group, but for those beyond three times as many as are performed at most.
func (d *driver) places(b *batch) int {
	held := 0
	for _, w := range d.work {
		if w.held {
			held++
		}
	}
	idle := min(held, heldMost) + min(len(d.groups.line), 3*d.parallel())
	return d.parallel() - (len(d.work) + len(b.begin) - idle)
}

// downtime is how long all that ran in a drive waited for providers that are down, in µs.
type downtime struct{ since, sum int64 }

// note takes in what holds all that runs, nil for nothing.
func (t *downtime) note(by *protocol.Held, now int64) {
	switch down := by != nil && by.Limit == protocol.HeldByOutage; {
	case down && t.since == 0:
		t.since = now
	case !down && t.since != 0:
		t.sum, t.since = t.sum+max(0, now-t.since), 0
	}
}

func (t *downtime) lasted(now int64) int64 {
	if t.since == 0 {
		return t.sum
	}
	return t.sum + max(0, now-t.since)
}

// tellHold tells once when all that runs is held, and once when that is over.
func (d *driver) tellHold(by *protocol.Held) {
	d.down.note(by, d.e.now())
	if held := by != nil; d.held != nil && held != d.allHeld {
		d.allHeld = held
		d.held(by)
	}
}

// childHold has a visit held while all that runs in its sub-workflow is. Where that cannot be journaled, nor can the
// end of the visit, which tells why.
func childHold(ctx context.Context, emit roles.Emit) func(*protocol.Held) {
	var since time.Time
	ctx = roles.Soon(context.WithoutCancel(ctx))
	return func(by *protocol.Held) {
		if by != nil {
			since = time.Now()
			_ = emit(ctx, *by)
			return
		}
		_ = emit(ctx, protocol.Released{MS: time.Since(since).Milliseconds()})
	}
}

// noteHold notes that a visit is held, or goes on.
func (d *driver) noteHold(step string, data protocol.Data) {
	w := d.work[step]
	if w == nil {
		return
	}
	switch x := data.(type) {
	case protocol.Held:
		w.held, w.outage = true, x.Limit == protocol.HeldByOutage
	case protocol.Released:
		w.held, w.outage = false, false
	}
}

// hurry has the visits that wait for a provider which is down go on at once, with the messages that came: somebody is there.
func (d *driver) hurry() {
	if len(d.s.Inbox) == 0 {
		return
	}
	for _, w := range d.work {
		if !w.outage {
			continue
		}
		if v, err := d.s.Visit(w.step); err == nil && d.roleOf(v).Action == protocol.ActPrompt { // others would not hear it
			w.stop(errSpoken)
		}
	}
}

// errSpoken is the cause with which a visit is interrupted that is to hear what was said.
var errSpoken = errors.New("a message came")

// stopwatch ends an attempt at its timeout, with the cause errTimeout. The time in which it is held does not count.
type stopwatch struct {
	cancel context.CancelCauseFunc
	now    func() int64 // the time of the journal, unix µs

	mu     sync.Mutex
	timer  *time.Timer   // nil without a timeout
	left   time.Duration // when the timer was started last
	since  time.Time     // the start of that
	held   bool
	from   int64 // of the hold
	lasted int64 // µs, of those that are over
}

// limited has the attempt under ctx end after its timeout; 0 is none.
func limited(ctx context.Context, timeout time.Duration, now func() int64) (context.Context, *stopwatch) {
	w := &stopwatch{left: timeout, since: time.Now(), now: now}
	if timeout > 0 {
		ctx, w.cancel = context.WithCancelCause(ctx)
		w.timer = time.AfterFunc(timeout, func() { w.cancel(errTimeout) })
	}
	return ctx, w
}

// watch stops the watch as the events of the attempt say.
func (w *stopwatch) watch(emit roles.Emit) roles.Emit {
	if emit == nil {
		return nil
	}
	return func(ctx context.Context, data ...protocol.Data) error {
		for _, x := range data {
			switch x.(type) {
			case protocol.Held:
				w.pause()
			case protocol.Released:
				w.goOn()
			}
		}
		return emit(ctx, data...)
	}
}

func (w *stopwatch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held {
		return
	}
	w.held, w.from = true, w.now()
	if w.timer != nil && w.timer.Stop() {
		w.left -= time.Since(w.since)
	}
}

func (w *stopwatch) goOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.held {
		return
	}
	w.held, w.lasted = false, w.lasted+max(0, w.now()-w.from)
	if w.timer != nil {
		w.since = time.Now()
		w.timer.Reset(max(0, w.left))
	}
}

// heldFor is for how many µs the attempt, which is over, was held.
func (w *stopwatch) heldFor() int64 {
	w.goOn()
	return w.lasted
}

func (w *stopwatch) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.cancel(nil)
	}
}
