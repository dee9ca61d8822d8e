package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wf/cas"
	"wf/protocol"
)

// DriveOptions say how a run is gone on with.
type DriveOptions struct {
	By     string                  // who resumes it; recorded
	Limits []protocol.LimitChanged // raised before anything else
}

// Drive goes on with a run until it is over or nothing can move, and returns where it stands.
// It holds the run's lock meanwhile: driving a run twice is an error wrapping
// protocol.ErrRunLive. When ctx ends it stops what it started, suspends the run and returns
// the state with ctx's error.
func (e *Engine) Drive(ctx context.Context, run protocol.RunID, o DriveOptions) (*State, error) {
	unlock, err := e.Store.LockRun(run)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &driver{e: e, run: run, work: map[string]*worker{}, in: make(chan report), fresh: map[protocol.Link][]byte{}}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	if d.s.Status().Final() {
		return d.s, nil
	}
	err = d.drive(ctx, o)
	return d.s, err
}

// driver owns a run while it is driven; all its fields belong to the goroutine of Drive.
type driver struct {
	e     *Engine
	run   protocol.RunID
	j     *cas.Journal
	s     *State
	work  map[string]*worker // visits being performed, by step
	in    chan report
	ready []report // how visits ended that were performed in place
	plan  Plan     // of the last decision: what it began runs now
	past  pastCache
	fresh map[protocol.Link][]byte // blocks the state may read before they are committed

	freshBytes    int
	sinceSnapshot int
	poke          []string // waiting visits to perform again: their sub-workflow moved
	breach        *breach  // a limit of the run that was reached
	unready       error    // a visit that cannot begin: what it needs is not there
	changes       uint64   // commit counter of the store when the journal was last looked at
}

// report is what a worker has to say: something that happened, or how the visit ended.
type report struct {
	step  string
	data  []protocol.Data
	reply chan error // for data
	end   *outcome
}

// load folds the journal and opens it for appending.
func (d *driver) load(ctx context.Context) error {
	s, err := d.e.State(ctx, d.run)
	if err != nil {
		return err
	}
	s.read = d.read(ctx)
	d.s = s
	d.j, err = d.e.Store.Journal(ctx, d.run)
	if err != nil {
		return err
	}
	return s.FoldMore(&d.e.lib, d.e.Store.After(ctx, d.run, s.Seq))
}

func (d *driver) read(ctx context.Context) Reader {
	ctx = context.WithoutCancel(ctx)
	return func(l protocol.Link) ([]byte, error) {
		if b, ok := d.fresh[l]; ok {
			return b, nil
		}
		return d.e.Store.Block(ctx, l)
	}
}

func (d *driver) drive(ctx context.Context, o DriveOptions) error {
	facts, err := d.opening(ctx, o)
	if err != nil {
		return d.abandon(err)
	}
	if err := d.advance(ctx, facts, nil); err != nil {
		return d.abandon(err)
	}
	for {
		plan := d.plan
		if len(d.work) == 0 {
			var err error
			if plan, err = d.s.Next(); err != nil {
				return d.abandon(err)
			}
		}
		if d.stopped(plan) {
			for _, w := range d.work {
				w.stop(errStopped)
			}
		}
		if len(d.work) == 0 {
			again, err := d.settle(ctx, plan)
			if err != nil || !again {
				return err
			}
		}
		if err := d.wait(ctx, plan); err != nil {
			return err
		}
	}
}

// opening is what is said when a run is gone on with; nothing at its very beginning, nor when
// it only waits.
func (d *driver) opening(ctx context.Context, o DriveOptions) (facts []cas.Draft, err error) {
	for _, l := range o.Limits {
		facts = append(facts, cas.Draft{Data: l})
	}
	if d.poke, err = d.movedChildren(ctx); err != nil {
		return nil, err
	}
	if d.s.Seq > 1 && (d.s.Status() != protocol.Waiting || len(d.poke) > 0) {
		by := o.By
		if by == "" {
			by = "wf"
		}
		facts = append(facts, cas.Draft{Data: protocol.ResumedBy{By: by}})
	}
	return facts, nil
}

// stopped reports whether what runs has to be stopped: the run was cancelled or has failed,
// or a limit that counts while things run was reached.
func (d *driver) stopped(p Plan) bool {
	if d.breach != nil && d.breach.limit != limitSteps {
		return true
	}
	return p.End != nil && (p.End.Status == protocol.Failed || p.End.Status == protocol.Cancelled)
}

// wait takes the next reports, or wakes for a timer, a change by another process, the end of
// ctx.
func (d *driver) wait(ctx context.Context, p Plan) error {
	if len(d.ready) > 0 {
		return d.take(ctx, d.next())
	}
	timer := time.NewTimer(d.untilNext(p))
	defer timer.Stop()
	select {
	case r := <-d.in:
		return d.take(ctx, r)
	case <-timer.C:
		return d.wake(ctx, p)
	case <-ctx.Done():
		return d.interrupt(ctx)
	}
}

// lookAround is how often an idle driver looks for what other processes wrote to its run.
const lookAround = 100 * time.Millisecond

func (d *driver) untilNext(p Plan) time.Duration {
	next := lookAround
	now := d.e.now()
	sooner := func(due int64) {
		next = max(0, min(next, time.Duration(due-now)*time.Microsecond))
	}
	for _, a := range p.Again {
		if d.work[a.Step.String()] == nil && a.Due > 0 {
			sooner(a.Due)
		}
	}
	for _, t := range p.Timers {
		sooner(t.Due)
	}
	return next
}

// wake looks at the clock and at what others wrote.
func (d *driver) wake(ctx context.Context, p Plan) error {
	n, err := d.e.Store.Changes(ctx)
	if err != nil {
		return d.abandon(err)
	}
	if n != d.changes {
		d.changes = n
		if err := d.catchup(ctx); err != nil {
			return d.abandon(err)
		}
	}
	if err := d.advance(ctx, d.fired(p), nil); err != nil {
		return d.abandon(err)
	}
	return nil
}

// next is the next report.
func (d *driver) next() report {
	if len(d.ready) == 0 {
		return <-d.in
	}
	r := d.ready[0]
	d.ready = d.ready[1:]
	return r
}

// fired are the timers whose time has come.
func (d *driver) fired(p Plan) []cas.Draft {
	var facts []cas.Draft
	for _, t := range p.Timers {
		if v, _, err := d.s.visitNamed(t.Step.String()); err == nil && v.mode == waits && t.Due <= d.e.now() {
			facts = append(facts, cas.Draft{Step: t.Step.String(), Data: protocol.TimerFired{Due: t.Due}})
		}
	}
	return facts
}

// catchup folds what other processes appended.
func (d *driver) catchup(ctx context.Context) error {
	entries, err := d.j.Catchup(ctx)
	if err != nil || len(entries) == 0 {
		return err
	}
	err = d.s.FoldMore(&d.e.lib, func(yield func(protocol.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return d.e.tellStored(ctx, d.run, entries)
}

// take handles a report and those that wait behind it, so that they share a commit.
func (d *driver) take(ctx context.Context, r report) error {
	var facts []cas.Draft
	var blocks []cas.Block
	var replies []chan error
	for more := true; more; {
		if r.end != nil {
			w := d.work[r.step]
			delete(d.work, r.step)
			w.stop(nil)
			f, b, err := d.conclude(ctx, w, r.end)
			if err != nil {
				return d.abandon(err)
			}
			facts, blocks = append(facts, f...), append(blocks, b...)
		} else {
			f, b, err := d.heard(r)
			switch {
			case err != nil:
				r.reply <- err // of the one who asked for what cannot be stored
			default:
				facts, blocks = append(facts, f...), append(blocks, b...)
				if r.reply != nil {
					replies = append(replies, r.reply)
				}
			}
		}
		if len(d.ready) > 0 {
			r = d.next()
			continue
		}
		select {
		case r = <-d.in:
		default:
			more = false
		}
	}
	var err error
	if len(facts) > 0 {
		err = d.advance(ctx, facts, blocks)
	}
	for _, c := range replies {
		c <- err
	}
	if err != nil {
		return d.abandon(err)
	}
	return nil
}

// heard turns what a worker emitted into drafts; deltas go to the watchers at once.
func (d *driver) heard(r report) (facts []cas.Draft, blocks []cas.Block, err error) {
	for _, x := range r.data {
		if delta, ok := x.(protocol.Delta); ok {
			if d.e.Watch != nil {
				d.e.Watch(Notice{Run: d.run, Step: r.step, Data: delta})
			}
			continue
		}
		if draft, ok := x.(protocol.CompactionDraft); ok {
			event, more, err := d.compaction(r.step, draft)
			if err != nil {
				return nil, nil, err
			}
			x, blocks = event, append(blocks, more...)
		}
		facts = append(facts, cas.Draft{Step: r.step, Data: x})
	}
	return facts, blocks, nil
}

// settle is called when nothing is performed: it ends the drive, or says to wait for a timer.
func (d *driver) settle(ctx context.Context, p Plan) (again bool, err error) {
	if d.breach != nil {
		return false, d.suspend(ctx, *d.breach)
	}
	if d.unready != nil && ctx.Err() == nil {
		return false, d.finish(ctx, &Verdict{Status: protocol.Suspended, Reason: protocol.ByError,
			Detail: d.unready.Error(), Code: protocol.CodeOf(d.unready)})
	}
	if p.End == nil || d.unready != nil {
		return true, nil // a retry is due later, or ctx has ended
	}
	if p.End.Status == protocol.Waiting && d.stays(p) {
		return true, nil
	}
	return false, d.finish(ctx, p.End)
}

// stays reports whether a timer is near enough to wait for.
func (d *driver) stays(p Plan) bool {
	patience := d.e.Patience
	if patience == 0 {
		patience = time.Minute
	}
	for _, t := range p.Timers {
		if t.Due-d.e.now() <= patience.Microseconds() {
			return true
		}
	}
	return false
}

// errStopped is the cause with which visits of a run that ends are cancelled.
var errStopped = errors.New("the run has ended")

// interrupt stops what runs and suspends the run.
func (d *driver) interrupt(ctx context.Context) error {
	quiet := context.WithoutCancel(ctx)
	d.drain(quiet)
	why := context.Cause(ctx)
	facts := []cas.Draft{{Data: protocol.SuspendedBy{Reason: protocol.ByInterrupt, Detail: protocol.NewText(why.Error()), Code: protocol.CodeOf(why)}}}
	if err := d.append(quiet, facts, nil, true); err != nil {
		return err
	}
	return ctx.Err()
}

// drain stops all workers and records what they still have to say.
func (d *driver) drain(ctx context.Context) {
	for _, w := range d.work {
		w.stop(context.Canceled)
	}
	for len(d.work) > 0 {
		r := d.next()
		if r.end != nil {
			delete(d.work, r.step)
			if f, b, err := d.conclude(ctx, &worker{step: r.step}, r.end); err == nil && r.end.err == nil {
				_ = d.append(ctx, f, b, false) // not acknowledged to anyone: done again on resume
			}
			continue
		}
		facts, blocks, err := d.heard(r)
		if err == nil {
			err = d.append(ctx, facts, blocks, false)
		}
		if r.reply != nil {
			r.reply <- err
		}
	}
}

// abandon is for when the journal cannot be written: the visits are stopped, what is not
// stored did not happen.
func (d *driver) abandon(cause error) error {
	for _, w := range d.work {
		w.stop(context.Canceled)
	}
	for len(d.work) > 0 {
		r := d.next()
		if r.end != nil {
			delete(d.work, r.step)
		} else if r.reply != nil {
			r.reply <- cause
		}
	}
	return fmt.Errorf("run %s: %w", d.run, cause)
}
