package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// DriveOptions say how a run is gone on with.
type DriveOptions struct {
	By     string                  // the person or program that resumes it; recorded
	Limits []protocol.LimitChanged // raised before anything else
	Move   bool                    // have a run whose files are on another machine go on in a copy of them here

	stored func([]protocol.Entry, []cas.Draft) // called with what the driver committed; may be nil
	held   func(*protocol.Held)                // called when all that runs is held, and, with nil, when that is over; may be nil
}

// Drive goes on with a run until it is over or nothing can move, and returns where it stands.
// It has the claim on the run meanwhile: driving a run twice is an error wrapping
// protocol.ErrRunLive. When ctx ends it stops what it started, suspends the run and returns
// the state with ctx's error.
func (e *Engine) Drive(ctx context.Context, run protocol.RunID, o DriveOptions) (*rules.State, error) {
	asked := ctx
	ctx, end := waitOut(ctx)
	defer end()
	if err := e.Store.MayGoOn(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	claim, err := e.claim(ctx, run)
	if err != nil {
		return nil, err
	}
	defer e.letGo(ctx, run, claim)
	ctx = roles.WithActing(context.WithValue(ctx, claimKey{}, claim), claim.Acting)
	d := &driver{e: e, run: run, claim: claim, work: map[string]*worker{}, in: make(chan report), pipe: newPipe(),
		preparing: map[string]*preparation{}, opened: map[string]*roles.Handover{}, stored: o.stored, held: o.held, past: e.pasts.take(run)}
	defer e.pasts.rest(d.past)
	defer func() { d.pipe.close() }()
	defer d.unprepareAll()
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	if d.s.Status().Final() {
		e.over(run)
		if d.s.Status() == protocol.Done {
			e.dropCopies(run) // the process that ended it may have been killed before it did
		}
		return d.s, d.standsStill(ctx)
	}
	if err := e.Own(ctx, run); err != nil {
		return nil, err
	}
	if err := e.MayDrive(run, d.s, o); err != nil {
		if errors.Is(err, protocol.ErrLacks) { // what it needs is noted anew, so that it is not given out here again
			err = cmp.Or(d.standsStill(ctx), err)
		}
		return nil, err
	}
	if err := d.bring(ctx, o); err != nil {
		return nil, err
	}
	if d.s.Info.Parent == nil || d.s.Info.Forked.Defined() {
		if err := e.mayAct(ctx, d.s.Info.Workspace); err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	leave, err := e.enterFork(d.s.Info.Workspace)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	defer leave()
	defer d.drove()
	defer d.tellHold(nil)
	defer d.untrack()
	if err = d.drive(ctx, o); err != nil {
		d.abandon(err)
		if errors.Is(err, protocol.ErrUnreachable) && asked.Err() != nil {
			err = fmt.Errorf("what was not stored yet is done again when the run goes on: %w", err)
		}
		if err != ctx.Err() {
			err = fmt.Errorf("run %s: %w", run, err)
		}
	}
	if err == nil && d.s.Status().Final() && !d.cleared {
		d.left = d.closeChildren(ctx)
	}
	if !errors.Is(err, protocol.ErrFenced) && !errors.Is(err, protocol.ErrUnreachable) { // else they are left by the next one that drives it
		d.leaveGroups(ctx)
	}
	if err == nil && d.s.Status().Final() { // another process may have cancelled it under a command
		e.over(run)
	}
	if err == nil && d.s.Status() == protocol.Done {
		e.dropCopies(run)
	}
	if err == nil {
		err = d.standsStill(ctx)
	}
	d.unprepareAll()
	return d.s, errors.Join(err, d.left, d.alarm)
}

// driver owns a run while it is driven; all its fields but fresh and past belong to the goroutine of Drive.
type driver struct {
	e     *Engine
	run   protocol.RunID
	claim cas.Claim
	j     *cas.Journal
	s     *rules.State
	from  *drivenRecords     // what s reads
	work  map[string]*worker // visits that have begun, by step

	preparing map[string]*preparation // those of them that go on beside the run, by step
	prepares  sync.WaitGroup
	opened    map[string]*roles.Handover // by what prepared a visit, until it is performed; by step
	alarm     error                      // of what was closed that no visit took

	in    chan report
	ready []report     // how visits ended that were performed in place
	soon  []chan error // of reports that are answered once all that waits is noted
	pipe  pipe         // what is on its way to the disk
	over  bool         // nothing more is begun
	last  bool         // nor comes anything more
	done  bool         // the run has ended, by what is in the pipe
	plan  rules.Plan   // of the last decision
	past  *pastCache
	own   assignment       // of the visit that is performed in place
	trace protocol.TraceID // that the run is of; zero before it is asked for
	timer *time.Timer
	fresh freshBlocks

	since        since         // the last snapshot
	snapshotSize int           // of the last one, in bytes
	poke         []string      // waiting visits to perform again: their sub-workflow moved
	breach       *rules.Breach // a limit of the run that was reached
	stood        cas.Standing  // where the run is by what was staged; zero where that is not known
	unready      error         // a visit that cannot begin: what it needs is not there
	stored       func([]protocol.Entry, []cas.Draft)
	held         func(*protocol.Held)
	allHeld      bool // as it was told to held
	down         downtime
	agents       bool   // the run has an agent: its commands are confined
	changes      uint64 // commit counter of the store when the journal was last looked at
	groups       groups // in which the run and its visits are
	tracker      *tracker
	cleared      bool                     // nothing that the run had begun goes on, so that its always roles may
	left         error                    // why that does not hold of a sub-workflow
	fans         map[protocol.StepID]*fan // of visits with own copies of the workspace, by the step without its item
}

// report is what a worker has to say: something that happened, or how the visit ended.
type report struct {
	step  string
	data  []protocol.Data
	reply chan error // for data; nil if no sender waits
	soon  bool       // the reply tells that the data has its place, not that it is durable
	end   *outcome

	prepared *preparation // in the place of data: it is done
}

// replyTo sends to a channel that has room; nil for none.
func replyTo(c chan error) func(error) {
	if c == nil {
		return nil
	}
	return func(err error) { c <- err }
}

// load folds the journal and opens it for appending. It does so also when ctx has ended: the
// interruption is to be recorded, however early it comes.
func (d *driver) load(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	s, snap, err := d.e.state(ctx, d.run)
	if err != nil {
		return err
	}
	d.from = &drivenRecords{records{&d.e.lib, d.read(ctx)}, make(map[protocol.Link]*protocol.StepRecord, maxMade)}
	s.ReadFrom(d.from)
	d.s, d.stood = s, cas.Standing{}
	d.j, err = d.e.Store.Journal(ctx, d.run)
	if err != nil {
		return err
	}
	d.j.Under(d.claim.Fence())
	if err := s.FoldMore(d.e.Store.After(ctx, d.run, s.Seq)); err != nil {
		return err
	}
	if d.agents, err = d.e.agents(ctx, s, 0); err != nil {
		return err
	}
	if err := d.loadGroups(ctx); err != nil {
		return err
	}
	behind := int(s.Seq - snap.seq) // drives may be short and many
	d.since, d.snapshotSize = since{behind, behind * eventSize}, snap.bytes
	return nil
}

func (d *driver) read(ctx context.Context) Reader {
	return d.fresh.before(d.e.reader(context.WithoutCancel(ctx)))
}

func (d *driver) drive(ctx context.Context, o DriveOptions) error {
	listening, stop := context.WithCancel(ctx)
	defer stop()
	facts, err := d.opening(ctx, o)
	if err != nil {
		return err
	}
	if facts, err = d.admission(ctx, facts); err != nil || d.s.Status().Final() {
		return err
	}
	tracked, err := d.tracking(ctx)
	if err != nil {
		return err
	}
	if err := d.advance(ctx, append(facts, tracked...), nil); err != nil {
		return err
	}
	for {
		plan := d.plan
		idle := len(d.work) == 0 && d.pipe.empty()
		if idle && d.done {
			return nil
		}
		if idle {
			var err error
			if plan, err = d.s.Next(); err != nil {
				return err
			}
		}
		d.stopIfOver(plan)
		if idle {
			again, err := d.settle(ctx, plan)
			if err != nil || !again {
				return err
			}
		}
		d.hear(listening)
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
	if d.poke, err = d.movedChildren(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	if !d.s.Fresh() && (d.s.Status() != protocol.Waiting || len(d.poke) > 0) {
		facts = append(facts, cas.Draft{Data: protocol.ResumedBy{By: o.by()}})
	}
	return facts, nil
}

// wait takes the next reports, or wakes for a commit, a timer, a change by another process,
// the end of ctx.
func (d *driver) wait(ctx context.Context, p rules.Plan) error {
	if len(d.ready) > 0 {
		r, _ := d.next()
		return d.take(ctx, r)
	}
	next := lookAround
	if len(d.pipe.flight) == 0 {
		next = d.untilNext(p)
	}
	if d.timer == nil {
		d.timer = time.NewTimer(next)
	} else {
		d.timer.Reset(next)
	}
	defer d.timer.Stop()
	select {
	case r := <-d.in:
		return d.take(ctx, r)
	case l := <-d.pipe.landed:
		return d.land(ctx, l)
	case <-d.timer.C:
		return d.wake(ctx, p)
	case <-d.groups.news:
		return d.wake(ctx, p)
	case <-ctx.Done():
		return d.interrupt(ctx)
	}
}

// lookAround is how often an idle driver looks for what other processes wrote to its run.
const lookAround = 100 * time.Millisecond

// lookAtMost is how long it looks: meanwhile it hears nothing of its visits.
const lookAtMost = 2 * time.Second

func (d *driver) untilNext(p rules.Plan) time.Duration {
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
		sooner(t.Wake)
	}
	return next
}

// wake looks at the clock and at what others wrote.
func (d *driver) wake(ctx context.Context, p rules.Plan) error {
	if err := d.push(ctx); err != nil || d.done || len(d.pipe.flight) > 0 {
		return err // what is on its way is waited for beside all that may come meanwhile
	}
	now, cancel := context.WithTimeout(cas.Patient(ctx, nil), lookAtMost)
	defer cancel()
	n, err := d.e.Store.Changes(now)
	moved := n != d.changes
	if err == nil && moved {
		err = d.catchup(now)
	}
	switch {
	case err != nil && (now.Err() != nil || errors.Is(err, protocol.ErrUnreachable)):
		return nil // seen next
	case err != nil:
		return err
	}
	d.changes = n
	if len(d.groups.line) > 0 && (moved || time.Since(d.groups.looked) >= lookAgain) {
		d.groups.look = true
	}
	return d.advance(ctx, d.fired(p), nil)
}

// fired is what is due of visits that wait. One whose sub-workflow has something due goes on.
func (d *driver) fired(p rules.Plan) []cas.Draft {
	var facts []cas.Draft
	for _, t := range p.Timers {
		step := t.Step.String()
		due, again := d.s.Due(step, d.e.now())
		if due != nil {
			facts = append(facts, cas.Draft{Step: step, Data: due})
		}
		if again && !slices.Contains(d.poke, step) {
			d.poke = append(d.poke, step)
		}
	}
	return facts
}

// catchup folds what other processes appended, as load does.
func (d *driver) catchup(ctx context.Context) error {
	entries, err := d.j.Catchup(ctx)
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := d.s.FoldMore(these(entries...)); err != nil {
		return err
	}
	d.hurry()
	return d.e.notifyStored(context.WithoutCancel(ctx), d.run, entries)
}

// take handles a report and those that wait behind it, so that they share a commit.
func (d *driver) take(ctx context.Context, r report) error {
	err := d.note(ctx, r)
	for more := true; more && err == nil; {
		if r, more = d.next(); more {
			err = d.note(ctx, r)
		}
	}
	if d.pipe.open != nil { // work that goes on before all is durable still stops at a limit
		if b := d.breached(false); b != nil {
			d.breach = b
		}
		d.stopIfOver(d.plan)
	}
	for _, c := range d.soon {
		c <- err
	}
	d.soon = d.soon[:0]
	if err == nil && d.pipe.open != nil {
		err = d.push(ctx)
	}
	if err == nil {
		d.tellHold(d.s.Held())
	}
	return err
}

// next is a report that waits.
func (d *driver) next() (r report, ok bool) {
	if len(d.ready) > 0 {
		r, d.ready = d.ready[0], d.ready[1:]
		return r, true
	}
	select {
	case r = <-d.in:
		return r, true
	default:
		return r, false
	}
}

// note takes one report into the state, and into what is to be written. A run that was cancelled
// takes no more of what its visits say while they are stopped.
func (d *driver) note(ctx context.Context, r report) error {
	over := d.s.Status().Final() || d.passed(r.step)
	if r.end == nil {
		if !d.s.Status().Final() && over {
			r.data = costs(r.data)
			over = len(r.data) == 0
		}
		if over {
			if r.reply != nil {
				r.reply <- errStopped
			}
			return nil
		}
		facts, blocks, err := d.heard(r)
		switch {
		case err != nil:
			r.reply <- err // to the sender of what cannot be stored
			return nil
		case r.soon && r.reply != nil:
			d.soon = append(d.soon, r.reply)
			return d.add(facts, blocks, nil)
		}
		return d.add(facts, blocks, replyTo(r.reply))
	}
	w := d.work[r.step]
	delete(d.work, r.step)
	d.unprepare(r.step)
	w.stop(nil)
	if over || d.over && r.end.err != nil {
		r.end.letGo()
		return nil // it was stopped: done again on resume
	}
	facts, blocks, err := d.conclude(ctx, w, r.end)
	if err != nil {
		r.end.letGo()
		return err
	}
	if r.end.files != nil && len(facts) > 0 {
		facts = append([]cas.Draft{{Step: r.step, Data: *r.end.files}}, facts...)
	}
	if name := d.groups.uses[r.step]; name != "" && errors.Is(r.end.err, protocol.ErrWaiting) && len(facts) == 0 {
		facts = []cas.Draft{{Step: r.step, Data: protocol.GroupLeft{Group: name}}}
	}
	return d.add(facts, blocks, r.end.landed())
}

// heard turns what a worker emitted into drafts; live output goes to the watcher.
func (d *driver) heard(r report) (facts []cas.Draft, blocks []cas.Block, err error) {
	if r.prepared != nil {
		d.unprepare(r.step)
		return d.prepared(r.step, r.prepared)
	}
	for _, x := range r.data {
		if delta, ok := x.(protocol.Delta); ok {
			d.say(api.Update{Run: d.run, Step: r.step, Data: delta})
			continue
		}
		if draft, ok := x.(protocol.CompactionDraft); ok {
			event, more, err := d.compaction(r.step, draft)
			if err != nil {
				return nil, nil, err
			}
			x, blocks = event, append(blocks, more...)
		}
		if _, asks := x.(protocol.WaitingFor); asks && d.isAlways(r.step) {
			return nil, nil, errCannotAsk
		}
		d.noteHold(r.step, x)
		fact, err := cas.Draft{Step: r.step, Data: x}.Ready()
		if err != nil {
			return nil, nil, err
		}
		facts = append(facts, fact)
	}
	return facts, blocks, nil
}

// settle is called when nothing is performed: it ends the drive, or says to wait for a timer.
func (d *driver) settle(ctx context.Context, p rules.Plan) (again bool, err error) {
	if d.s.Status().Final() {
		return false, nil // another process cancelled it
	}
	if d.breach != nil && d.s.Closing != nil {
		return true, d.skipRest(ctx, d.breach)
	}
	if d.breach != nil {
		err := d.suspend(ctx, *d.breach)
		return err == nil && d.ended(ctx), err
	}
	if d.unready != nil && ctx.Err() == nil {
		return d.finish(ctx, &rules.Verdict{Status: protocol.Suspended, Reason: protocol.ByError,
			Detail: d.unready.Error(), Code: protocol.CodeOf(d.unready)})
	}
	if len(p.Start) > 0 && d.s.Closing != nil && ctx.Err() == nil {
		if !d.cleared { // the last of the graph was stopped
			d.cleared, d.left = true, d.closeChildren(ctx)
		}
		return true, d.push(ctx)
	}
	if p.End == nil || d.unready != nil {
		return true, nil // a retry is due later, or ctx has ended
	}
	if _, ok := d.addressed(); ok && ctx.Err() == nil {
		return true, d.push(ctx)
	}
	if p.End.Status == protocol.Waiting && d.stays(p) {
		return true, nil
	}
	return d.finish(ctx, p.End)
}

// stays reports whether a timer is near enough to wait for. A question is not waited with, since its answer may
// come from the process that asked for the drive; what is due of it already is done.
func (d *driver) stays(p rules.Plan) bool {
	patience := cmp.Or(d.e.Patience, time.Minute)
	return slices.ContainsFunc(p.Timers, func(t rules.WaitingVisit) bool {
		if t.Kind != protocol.WaitTimer {
			return t.Wake <= d.e.now()
		}
		return t.Wake-d.e.now() <= patience.Microseconds()
	})
}
