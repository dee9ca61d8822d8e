package engine

import (
	"context"
	"sync"
	"time"

	"wf/protocol"
	"wf/roles"
)

// heldMost is how many held visits of a run take no place of Engine.Parallel: each has a conversation in memory.
const heldMost = 256

// places is how many more visits may be performed, beside those that are about to begin.
func (d *driver) places(begin int) int {
	held := 0
	for _, w := range d.work {
		if w.held {
			held++
		}
	}
	return d.parallel() - (len(d.work) - min(held, heldMost)) - begin
}

// noteHold notes that a visit is held, or goes on.
func (d *driver) noteHold(step string, data protocol.Data) {
	w := d.work[step]
	if w == nil {
		return
	}
	switch data.(type) {
	case protocol.Held:
		w.held = true
	case protocol.Released:
		w.held = false
	}
}

// stopwatch ends an attempt at its timeout, with the cause errTimeout. The time in which it is held does not count.
type stopwatch struct {
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer   // nil without a timeout
	left  time.Duration // when the timer was started last
	since time.Time     // the start of that
	hold  time.Time     // zero while it is not held
	held  time.Duration
}

// limited has the attempt under ctx end after its timeout; 0 is none.
func limited(ctx context.Context, timeout time.Duration) (context.Context, *stopwatch) {
	w := &stopwatch{left: timeout, since: time.Now()}
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
	if !w.hold.IsZero() {
		return
	}
	w.hold = time.Now()
	if w.timer != nil && w.timer.Stop() {
		w.left -= w.hold.Sub(w.since)
	}
}

func (w *stopwatch) goOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hold.IsZero() {
		return
	}
	w.since = time.Now()
	w.held += w.since.Sub(w.hold)
	w.hold = time.Time{}
	if w.timer != nil {
		w.timer.Reset(max(0, w.left))
	}
}

// heldFor is how long the attempt, which is over, was held.
func (w *stopwatch) heldFor() time.Duration {
	w.goOn()
	return w.held
}

func (w *stopwatch) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.cancel(nil)
	}
}
