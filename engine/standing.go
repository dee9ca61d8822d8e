package engine

import (
	"context"
	"errors"
	"fmt"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// A Queue is a store that says which of its runs are due, of all that are in it, so that nothing has to be kept in memory of
// those that wait. It knows by what the engine writes beside the events: see Standing.
type Queue interface {
	// Due gives out at most limit runs that are due now, and for which have is all that they need: the longest due come first. Another
	// process is not given them as well until this one has driven them, or was found dead. A run whose Home is not in have is among them
	// once no process of that machine has taken it for a while: it may move.
	Due(ctx context.Context, have []string, limit int) ([]protocol.RunID, error)
	// Offers is what each process has that asked for runs with Due, as far as it is alive. Nothing is decided by it: a process that was
	// killed is in it for a while.
	Offers(ctx context.Context) ([][]string, error)
	// PutOff has a run that cannot be driven here be due later, in seconds, if it is due now.
	PutOff(ctx context.Context, run protocol.RunID, seconds int) error
	// AwaitDue returns when runs may be due: at the next moment at which one was made so that this process knows of, else after
	// the time that the store leaves between two looks. The error is the cause of ctx.
	AwaitDue(ctx context.Context) error
}

// queue is the store where it is a Queue, else nil.
func (e *Engine) queue() Queue {
	q, _ := e.Store.(Queue)
	return q
}

// Place is what a run needs that must be driven on one machine.
func Place(machine string) string { return "place:" + machine }

// Offers is what this process has of all that a run can need.
func (e *Engine) Offers() []string {
	if e.Machine == "" {
		return e.Has
	}
	return append([]string{Place(e.Machine)}, e.Has...)
}

// Standing says where a run is, as it is written with its events: whether it is due, when, and where. It is the one place
// that decides which runs go on by themselves.
//
//	running, queued, suspended since its daemon was stopped ─► now
//	waiting                                                 ─► at its first timer
//	suspended for another reason, ended                     ─► never
//	the run of a sub-workflow                               ─► with its parent, but for one that closes
func Standing(run protocol.RunID, s *rules.State) cas.Standing {
	x := cas.Standing{Run: run, State: s.Status(), Workflow: s.Program().Workflow.Name}
	x.Needs = s.Program().WorkerNeeds()
	if s.Info.Machine != "" && s.Info.Workspace != "" {
		x.Home = Place(s.Info.Machine)
	}
	p := parentOf(s)
	if p != nil || s.Tracked == nil || !s.Tracked.On {
		x = stayPut(x)
	}
	if p != nil {
		if x.Parent = p.Run; !s.Closes() {
			return x
		}
	}
	switch {
	case x.State == protocol.Running, x.State == protocol.Queued, x.State == protocol.Suspended && s.Code() == protocol.ErrServeStopped.Code:
		x.Due = cas.DueNow
	case x.State == protocol.Waiting:
		x.Due = FirstTimer(s)
	}
	return x
}

// FirstTimer is when the first thing is due of what a run waits for, unix µs; 0 is never.
func FirstTimer(s *rules.State) (due int64) {
	for _, w := range s.Waiting() {
		if w.Wake > 0 && (due == 0 || w.Wake < due) {
			due = w.Wake
		}
	}
	return due
}

// stand notes with a batch of the driver where its run is behind it, if that is news.
func (d *driver) stand(st *cas.Staged) {
	if d.e.queue() == nil {
		return
	}
	if now := Standing(d.run, d.s); !now.Same(d.stood) {
		d.stood = now
		st.Stands(now)
	}
}

// standsStill notes where the run is at the end of a drive that may have written nothing: else a run that was due for
// news that turned out to be none would stay due.
func (d *driver) standsStill(ctx context.Context) error { return d.standsAs(ctx, Standing(d.run, d.s)) }

func (d *driver) standsAs(ctx context.Context, now cas.Standing) error {
	if d.e.queue() == nil {
		return nil
	}
	head, seq := d.j.Head()
	if seq != d.s.Seq || now.Same(d.stood) {
		return nil
	}
	st, err := d.j.Stage(d.s.TS, nil, nil) // under the claim of the drive
	if err != nil {
		return err
	}
	now.At = head
	st.Stands(now)
	_, err = d.j.Commit(context.WithoutCancel(ctx), st)
	if errors.Is(err, protocol.ErrHeadMoved) || errors.Is(err, protocol.ErrRunDeleted) {
		return nil // whoever wrote to it has said where it is
	}
	if err != nil {
		return fmt.Errorf("note where run %s is: %w", d.run, err)
	}
	return nil
}

// stands notes with a batch that begins a run where it is behind that.
func (e *Engine) stands(ctx context.Context, st *cas.Staged, run protocol.RunID) error {
	if e.queue() == nil {
		return nil
	}
	s, err := rules.Fold(e.lib.records(over(st.Blocks(), e.reader(ctx))), these(st.Entries()...))
	if err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	st.Stands(begun(Standing(run, s)))
	return nil
}

// begun is where a run is that this process has just begun, and is about to drive.
func begun(x cas.Standing) cas.Standing {
	if x.Due == cas.DueNow {
		x.Due = cas.DueSoon
	}
	return x
}

// moved notes with events that are no driver's where their run is behind them; s is the state before. What is written to
// a sub-workflow is news for the run that it is driven with, where tells says so.
func (e *Engine) moved(ctx context.Context, st *cas.Staged, run protocol.RunID, s *rules.State, tells bool) error {
	if e.queue() == nil {
		return nil
	}
	s.ReadFrom(e.lib.records(over(st.Blocks(), e.reader(ctx))))
	if err := s.FoldMore(these(st.Entries()...)); err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	st.Stands(Standing(run, s))
	if p := parentOf(s); p != nil && tells {
		root, _, err := e.lineage(ctx, run, p)
		if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
			return nil // it is no part of a run that is there
		}
		if err != nil {
			return err
		}
		st.Stands(cas.Wake(root))
	}
	return nil
}

// Arriving is where a run is that comes to another store: it is not due there before it is asked for. root is the run whose tree of runs it is a part of.
// Of a run that this program does not understand, such as one of a later version, x is zero: it comes all the same.
func (e *Engine) Arriving(ctx context.Context, run protocol.RunID) (x cas.Standing, root protocol.RunID, err error) {
	s, err := e.State(ctx, run)
	switch {
	case err == nil:
	case ctx.Err() != nil, protocol.OfStore(err):
		return x, "", err
	default:
		return x, run, nil
	}
	x, root = Standing(run, s), run
	x.Due = 0
	if p := parentOf(s); p != nil {
		root, _, err = e.lineage(ctx, run, p)
		if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
			root, err = run, nil // what it was a part of is gone
		}
	}
	return x, root, err
}

// Arrived notes where runs are that came to this store from elsewhere; see Arriving.
func (e *Engine) Arrived(ctx context.Context, runs []protocol.RunID) error {
	return e.stand(ctx, runs, func(run protocol.RunID) (cas.Standing, error) {
		x, _, err := e.Arriving(ctx, run)
		return x, err
	})
}

// Adopted notes where runs are that may go on here from now on: those that would go on by themselves are due.
func (e *Engine) Adopted(ctx context.Context, runs []protocol.RunID) error {
	return e.stand(ctx, runs, func(run protocol.RunID) (x cas.Standing, err error) {
		if s, err := e.State(ctx, run); err == nil {
			return Standing(run, s), nil
		} else if ctx.Err() != nil || protocol.OfStore(err) {
			return x, err
		}
		return x, nil // this program does not understand it
	})
}

// stand notes where runs are whose events say nothing new.
func (e *Engine) stand(ctx context.Context, runs []protocol.RunID, of func(protocol.RunID) (cas.Standing, error)) error {
	if e.queue() == nil {
		return nil
	}
	for _, run := range runs {
		head, _, err := e.Store.Tip(ctx, run)
		var x cas.Standing
		if err == nil {
			x, err = of(run)
		}
		if err == nil && x.Run != "" {
			x.At = head
			err = e.Store.Commit(ctx, cas.Batch{Runs: []cas.Standing{x}})
		}
		if errors.Is(err, protocol.ErrHeadMoved) || errors.Is(err, protocol.ErrRunDeleted) {
			continue // the process that wrote to it has said where it is
		}
		if err != nil {
			return fmt.Errorf("note where run %s is: %w", run, err)
		}
	}
	return nil
}
