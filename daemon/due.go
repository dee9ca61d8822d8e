package daemon

import (
	"cmp"
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

// mostDrives is how many runs a process drives at once, unless Options.Drives says otherwise: others are left to other processes, or wait.
const mostDrives = 256

// When a full process takes some more all the same: a run that it drives may wait for a slot of a group, or an answer, of one that no process drives.
const (
	relief     = 10 * time.Second
	reliefRuns = 8
)

// room is how many more runs it may drive; the caller holds mu.
func (k *Supervisor) room() int { return max(0, cmp.Or(k.most, mostDrives)-k.driving) }

// awaitRoom waits until there is room, and says how much.
func (k *Supervisor) awaitRoom() int {
	full := time.NewTimer(cmp.Or(k.relief, relief))
	defer full.Stop()
	for {
		_, next := k.ended()
		k.mu.Lock()
		room := k.room()
		k.mu.Unlock()
		if room > 0 {
			return room
		}
		select {
		case <-next:
		case <-full.C:
			return reliefRuns
		case <-k.ctx.Done():
			return 0
		}
	}
}

// serve drives what is due until the supervisor ends.
func (k *Supervisor) serve(q engine.Queue) {
	for k.ctx.Err() == nil {
		more, err := k.takeDue(q, min(dueAtOnce, k.awaitRoom()))
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
func (k *Supervisor) takeDue(q engine.Queue, most int) (more bool, err error) {
	if most == 0 {
		return false, nil
	}
	runs, err := q.Due(k.ctx, k.e.Offers(), most)
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
	return len(runs) == most, nil
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
