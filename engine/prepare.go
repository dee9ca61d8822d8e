package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// preparation is what a roles.Preparer does for a visit, in a goroutine of its own. The driver waits for it, so that the
// step_started of the visit holds what came of it. Where it says something first, which is that it is held, the visit
// begins without, and another step_started brings the rest:
//
//	done ──────────────────────────────────────► step_started
//	held ─► step_started {preparing} ─► held ─► released ─► step_started
//
// What is cut off in between is prepared anew.
type preparation struct {
	ctx    context.Context
	cancel context.CancelFunc

	once  sync.Once
	said  chan struct{}         // closed when it says something, before that is journaled
	begun chan struct{}         // closed when the visit is performed, by emit
	emit  roles.Emit            // of the visit
	done  chan struct{}         // closed when the fields below are there
	gives roles.Preparation     // for the record
	err   error                 // why there is none
	start *protocol.StepStarted // with what it gives, once that is in the state

	opened roles.Handover // what the visit goes on with
}

// prepare has the performer of a visit prepare it; nil is that there is nothing to do. It sees the tools of the
// predecessor, which a visit that resumes reuses.
func (d *driver) prepare(ctx context.Context, turn protocol.Turn, resumes protocol.Link) (*preparation, error) {
	by, err := d.e.performer(turn.Role.Action)
	if err != nil {
		return nil, err
	}
	preparer, ok := by.(roles.Preparer)
	if !ok {
		return nil, nil
	}
	if resumes.Defined() {
		before, err := d.from.Step(resumes)
		if err != nil {
			return nil, err
		}
		if turn.History.Tools, err = textOf(d.from.read, protocol.Text{Link: before.Tools}); err != nil {
			return nil, err
		}
	}
	p := &preparation{said: make(chan struct{}), begun: make(chan struct{}), done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	step := turn.Step.String()
	d.shut(step)
	d.opened[step] = &p.opened
	d.prepares.Go(func() {
		defer close(p.done)
		defer func() {
			if r := recover(); r != nil {
				p.err = fmt.Errorf("preparing %s: panic: %v", turn.Step, r)
			}
		}()
		p.gives, p.err = preparer.Prepare(roles.HandingOver(roles.Emitting(p.ctx, p.say), &p.opened), turn)
	})
	return p, nil
}

// prepareFor is prepare for a visit that is to begin.
func (d *driver) prepareFor(ctx context.Context, x rules.Decision) (*preparation, error) {
	role, ok := d.s.Program().Workflow.RoleNamed(x.Role)
	if !ok || x.Empty {
		return nil, nil
	}
	turn := d.s.TurnOf(d.run, x.Step, role)
	turn.Visit, turn.EdgePrompt = x.Visit, x.EdgePrompt
	return d.prepare(ctx, turn, x.Resumes)
}

// say journals what the preparation says as soon as the visit is performed.
func (p *preparation) say(ctx context.Context, data ...protocol.Data) error {
	p.once.Do(func() { close(p.said) })
	select {
	case <-p.begun:
		return p.emit(ctx, data...)
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// besideOthers is for how long a preparation is waited for while others are held: what they wait for holds for this one
// too, most likely, and a fan-out may have hundreds of them.
const besideOthers = 5 * time.Millisecond

// inTime waits for a preparation; false is that it goes on beside the run.
func (d *driver) inTime(p *preparation) bool {
	var enough <-chan time.Time
	if len(d.preparing) > 0 {
		enough = time.After(besideOthers)
	}
	select {
	case <-p.done:
		p.cancel()
		return true
	case <-p.said:
	case <-enough:
	}
	return false
}

// finishPreparing waits in the worker's goroutine until the visit is prepared, and that is in the journal.
func (d *driver) finishPreparing(ctx context.Context, x *assignment, emit roles.Emit) error {
	p := x.preparing
	defer context.AfterFunc(ctx, p.cancel)()
	p.emit = emit
	close(p.begun)
	<-p.done
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case p.err != nil:
		return fmt.Errorf("prepare %s: %w", x.turn.Step, p.err)
	}
	r := report{step: x.turn.Step.String(), prepared: p, reply: make(chan error, 1)}
	select {
	case d.in <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := <-r.reply; err != nil {
		return err
	}
	x.begun = *p.start
	return nil
}

// prepared is the step_started of a visit that was held while it was prepared, with what that gave.
func (d *driver) prepared(step string, p *preparation) (facts []cas.Draft, blocks []cas.Block, err error) {
	v, err := d.s.Visit(step)
	if err != nil {
		return nil, nil, err
	}
	b := batch{}
	started := v.Begun
	started.Preparing = false
	if err := d.fillIn(&b, &started, p.gives); err != nil {
		return nil, nil, err
	}
	p.start = &started
	return []cas.Draft{{Step: step, Data: started}}, b.blocks, nil
}

// fillIn has a step_started hold what was prepared, and the messages that waited.
func (d *driver) fillIn(b *batch, started *protocol.StepStarted, gives roles.Preparation) (err error) {
	if gives.Tools != "" {
		started.Tools = b.payload(d, gives.Tools)
	}
	inject, messages, err := d.s.Inject(started.Role, gives.Inject)
	if err != nil {
		return err
	}
	if started.Messages = messages; inject != "" {
		started.Inject = b.payload(d, inject)
	}
	return nil
}

// unprepare ends what is left of preparing a visit.
func (d *driver) unprepare(step string) {
	if p := d.preparing[step]; p != nil {
		p.cancel()
		delete(d.preparing, step)
	}
}

// unprepareAll ends all preparations, and closes what they opened.
func (d *driver) unprepareAll() {
	for step := range d.preparing {
		d.unprepare(step)
	}
	d.prepares.Wait()
	for step := range d.opened {
		d.shut(step)
	}
}

// shut closes what was opened for a visit that is not performed after all, or later.
func (d *driver) shut(step string) {
	if left := d.opened[step].Close(); left != nil {
		d.alarm = errors.Join(d.alarm, left)
	}
	delete(d.opened, step)
}
