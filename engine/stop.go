package engine

import (
	"context"
	"errors"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// stopIfOver stops what runs where the run was cancelled or has failed, or a limit that counts
// while things run was reached.
func (d *driver) stopIfOver(p rules.Plan) {
	over := d.breach != nil && d.breach.Limit != rules.LimitSteps ||
		p.End != nil && (p.End.Status == protocol.Failed || p.End.Status == protocol.Cancelled)
	if c := d.s.Closing; c != nil && c.Skipped {
		over = true
	}
	for step, w := range d.work {
		if over || d.passed(step) {
			d.halt(w, errStopped)
		}
	}
}

// errStopped is the cause with which visits of a run that ends are cancelled.
var errStopped = errors.New("the run has ended")

// interrupt stops what runs, records what it still has to say, and suspends the run.
func (d *driver) interrupt(ctx context.Context) error {
	quiet := context.WithoutCancel(ctx)
	d.over = true
	if d.done {
		if err := d.flush(quiet); err != nil || d.done {
			return err
		}
	}
	for _, w := range d.work {
		d.halt(w, context.Canceled)
	}
	for len(d.work) > 0 {
		var err error
		if r, ok := d.next(); ok {
			err = d.take(quiet, r)
		} else {
			select {
			case r = <-d.in:
				err = d.take(quiet, r)
			case l := <-d.pipe.landed:
				err = d.land(quiet, l)
			}
		}
		if err != nil {
			return err
		}
	}
	why := context.Cause(ctx)
	facts := []cas.Draft{{Data: protocol.SuspendedBy{Reason: protocol.ByInterrupt, Detail: protocol.NewText(why.Error()), Code: protocol.CodeOf(why)}}}
	if err := d.append(quiet, facts, nil); err != nil {
		return err
	}
	return ctx.Err()
}

// abandon is for when the journal cannot be written: the visits are stopped, what is not
// stored did not happen.
func (d *driver) abandon(cause error) {
	d.pipe.close()
	for _, b := range d.pipe.all() {
		for _, c := range b.replies {
			c(cause)
		}
	}
	d.pipe = pipe{}
	for step, w := range d.work {
		w.stop(context.Canceled)
		if !w.busy {
			delete(d.work, step)
		}
	}
	for len(d.work) > 0 {
		r, ok := d.next()
		if !ok {
			r = <-d.in
		}
		if r.end != nil {
			r.end.letGo()
			delete(d.work, r.step)
		} else if r.reply != nil {
			r.reply <- cause
		}
	}
}
