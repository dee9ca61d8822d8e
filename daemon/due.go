package daemon

import (
	"context"
	"errors"
	"time"

	"wf/engine"
	"wf/protocol"
)

// In a store that several machines drive, a Supervisor keeps nothing of runs that wait, and looks at no journal to find those
// that do not: it asks which are due, and lets each go when it waits or has ended.
//
//	Due ─► drive ─► waits, ended: let go, the store knows when it is due
//	         └─► cannot be driven here: put off

// putOffTime is when a run is tried again that cannot be driven here: another process may well.
const putOffTime = time.Minute

// queue is the store, where it knows which runs are due; nil for a supervisor that looks for nothing, or into journals.
func (k *Supervisor) queue() engine.Queue {
	if k.alone {
		return nil
	}
	q, _ := k.s.(engine.Queue)
	return q
}

// serve drives what is due until the supervisor ends.
func (k *Supervisor) serve(q engine.Queue) {
	for k.ctx.Err() == nil {
		more, err := k.takeDue(q)
		if err == nil {
			k.lookedAround()
			if !more {
				err = q.AwaitDue(k.ctx)
			}
		}
		if err != nil && k.ctx.Err() == nil {
			k.log.Error("it is not known which runs are due", "why", describe(err), "again in", gracePeriod)
			k.pause(gracePeriod)
		}
	}
}

// dueAtOnce is how many runs are asked for at once.
const dueAtOnce = 32

// takeDue drives the runs that the store gives out; more is that it may have others.
func (k *Supervisor) takeDue(q engine.Queue) (more bool, err error) {
	runs, err := q.Due(k.ctx, k.e.Offers(), dueAtOnce)
	if err != nil || len(runs) == 0 {
		return false, err
	}
	k.awaitRequests()
	for _, run := range runs {
		k.mu.Lock()
		if r := k.runs[run]; r == nil || !r.driving { // else its drive is about to claim it
			k.begin(run, engine.DriveOptions{By: "wf serve", Move: true}) // the store gives out none that another machine may still take
		}
		k.mu.Unlock()
	}
	return len(runs) == dueAtOnce, nil
}

// putOff has the store give out a run later that could not be driven now, for whatever reason.
func (k *Supervisor) putOff(run protocol.RunID, failed error) {
	q := k.queue()
	if q == nil || failed == nil || errors.Is(failed, protocol.ErrRunLive) || errors.Is(failed, protocol.ErrFenced) || errors.Is(failed, protocol.ErrLacks) || k.ctx.Err() != nil {
		return
	}
	err := q.PutOff(context.WithoutCancel(k.ctx), run, int(putOffTime/time.Second))
	if err != nil {
		k.log.Error("the run may be tried again at once", "run", run, "why", describe(err))
	}
}
