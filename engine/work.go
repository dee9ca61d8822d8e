package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// worker is a visit that has begun. It is performed once its start is on disk; in place, as
// soon as that is being written.
type worker struct {
	step    string
	ctx     context.Context
	cancel  context.CancelCauseFunc // nil in place: nothing waits for it
	inPlace bool
	stopped bool
	waits   bool  // for a slot of the group of its role
	refused error // why it is not performed, where its group is busy
	busy    bool  // it is performed
	held    bool  // kept back by a provider: it takes no place of Engine.Parallel
	outage  bool  // since that is down
	started int64 // unix µs, since when
}

// outcome is how a visit came back.
type outcome struct {
	conclusion protocol.Conclusion
	err        error
	timedOut   bool
	held       int64 // µs, kept back by the limits of a provider, or being prepared meanwhile
	git        *protocol.GitState
	artifacts  artifacts
	own        ownOutcome
	files      *protocol.FilesAt // what it left in the workspace; nil where that is not recorded
}

// errTimeout is the cause with which an attempt is cancelled at its timeout.
var errTimeout = errors.New("the attempt took longer than its timeout")

// phaseExpression is the phase of a failure by an expression of the definition.
const phaseExpression = "expression"

// performer finds the Performer of an action.
func (e *Engine) performer(a protocol.Action) (roles.Performer, error) {
	if p := e.Performers[a]; p != nil {
		return p, nil
	}
	switch a {
	case protocol.ActWorkflow:
		return subflow{e}, nil
	case protocol.ActMerge:
		return merging{e: e}, nil
	}
	return nil, fmt.Errorf("nothing performs %q roles", a)
}

// inPlace reports whether a performer only takes values over: it neither waits nor acts nor
// has anything to say meanwhile.
func inPlace(p roles.Performer) bool {
	_, set := p.(roles.Set)
	return set
}

// newWorker is for a visit that begins.
func (d *driver) newWorker(ctx context.Context, step string) *worker {
	w := &worker{step: step, ctx: ctx}
	if v, err := d.s.Visit(step); err == nil {
		p, err := d.e.performer(d.roleOf(v).Action)
		w.inPlace = err == nil && inPlace(p)
	}
	if !w.inPlace {
		w.ctx, w.cancel = context.WithCancelCause(ctx)
	}
	return w
}

// stop ends the performing of a visit, or keeps it from being performed.
func (w *worker) stop(cause error) {
	w.stopped = true
	if w.cancel != nil {
		w.cancel(cause)
	}
}

// ended reports whether it was stopped, or the drive is.
func (w *worker) ended() bool { return w.stopped || w.ctx.Err() != nil }

// perform carries out a visit: in place, or in a goroutine of its own.
func (d *driver) perform(w *worker) {
	step := w.step
	w.busy, w.started = true, d.e.now()
	x := &d.own
	if !w.inPlace {
		x = new(assignment)
	}
	var err error
	if !w.ended() { // what it is given may take some seconds to compute
		err = d.assign(w.ctx, x, step)
	}
	if w.ended() || w.refused != nil || err != nil {
		d.shut(step)
	}
	x.opened = d.opened[step]
	delete(d.opened, step)
	switch {
	case w.ended(): // stopped before it was performed
		d.ready = append(d.ready, report{step: step, end: &outcome{err: cmp.Or(w.ctx.Err(), context.Canceled)}})
		return
	case w.refused != nil:
		d.ready = append(d.ready, report{step: step, end: &outcome{err: w.refused}})
		return
	case err != nil:
		err = &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "expression", Phase: phaseExpression, Message: err.Error()}, Err: err}
		d.ready = append(d.ready, report{step: step, end: &outcome{err: err}})
		return
	case w.inPlace:
		d.ready = append(d.ready, report{step: step, end: d.carryOut(w.ctx, x, nil)})
		return
	}
	reports := d.in
	emit := func(ectx context.Context, data ...protocol.Data) error {
		return send(ectx, reports, step, data)
	}
	go func() {
		reports <- report{step: step, end: d.carryOut(w.ctx, x, emit)}
	}()
}

// send hands events to the driver and waits until they are durable, or, with roles.Soon, have
// their place. A delta alone is not waited for.
func send(ctx context.Context, to chan<- report, step string, data []protocol.Data) error {
	r := report{step: step, data: data, soon: roles.IsSoon(ctx)}
	stored := func(x protocol.Data) bool { _, live := x.(protocol.Delta); return !live }
	if len(data) == 0 || slices.ContainsFunc(data, stored) {
		r.reply = make(chan error, 1)
	}
	select {
	case to <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.reply == nil {
		return nil
	}
	return <-r.reply
}

// carryOut runs in the worker's goroutine.
func (d *driver) carryOut(ctx context.Context, x *assignment, emit roles.Emit) (end *outcome) {
	end = &outcome{}
	turn := &x.turn
	defer func() {
		if r := recover(); r != nil {
			end.err = errors.Join(end.err, fmt.Errorf("performing %s: panic: %v", turn.Step, r))
		}
	}()
	defer func() {
		if left := x.opened.Close(); left != nil {
			end.err = errors.Join(left, end.err)
		}
	}()
	if x.preparing != nil {
		from := d.e.now()
		if end.err = d.finishPreparing(ctx, x, emit); end.err != nil {
			return end
		}
		end.held = max(0, d.e.now()-from)
	}
	if err := d.fill(ctx, turn, &x.begun, x.since); err != nil {
		end.err = err
		return end
	}
	if countedAsFailed(*turn) {
		end.err = &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "cut_off", Phase: "run", Message: "wf ended while the command ran, and a person counted it as failed"}}
		return end
	}
	if x.own != nil {
		leave, err := d.e.enterOwn(ctx, x, emit)
		if err != nil {
			end.err = err
			return end
		}
		defer leave()
	} else if turn.Role.Caching == nil && (turn.Trial != "" || roles.IsForkedFiles(d.e.Copies, turn.Workspace)) { // keys of results have the environment
		aside(turn)
	}
	if m, ok := x.by.(merging); ok {
		m.end = &end.own
		x.by = m
	}
	remove, err := d.e.layOut(ctx, turn)
	defer remove()
	if err != nil {
		end.err = err
		return end
	}
	here := d.e.acts(x)
	defer here.leave()
	files, err := d.recorded(ctx, turn, here, emit)
	if err != nil {
		end.err = err
		return end
	}
	ctx = roles.HandingOver(ctx, x.opened)
	whole := ctx
	if turn.Role.Action == protocol.ActRun {
		acting, over, err := d.claim.Acting(ctx)
		if err != nil {
			end.err = err
			return end
		}
		defer over()
		ctx = acting
	}
	ctx, clock := limited(ctx, time.Duration(turn.Role.Timeout)*time.Microsecond, d.e.now)
	defer clock.stop()
	if turn.Role.Caching != nil {
		end.conclusion, end.err = d.reuse(ctx, x, here, clock.watch(files.watch(emit)))
	} else {
		end.conclusion, end.err = x.by.Perform(ctx, *turn, clock.watch(files.watch(emit)))
	}
	end.held += clock.heldFor()
	end.timedOut = end.err != nil && errors.Is(context.Cause(ctx), errTimeout)
	if end.err == nil && turn.Role.Action.ActsOnFiles() && x.own == nil {
		end.git = gitState(ctx, turn.Workspace)
	}
	end.files = files.after(whole)
	d.e.takeArtifacts(whole, turn, end)
	if x.own != nil {
		d.e.takeOwn(whole, x, end)
	}
	return end
}

// countedAsFailed reports whether a person answered onceQuestion so. A resume after that runs
// the command again.
func countedAsFailed(t protocol.Turn) bool {
	if t.Role.Action != protocol.ActRun || !t.Role.Once || len(t.Answers) == 0 {
		return false
	}
	for _, x := range slices.Backward(t.Transcript) {
		switch x.Type {
		case protocol.EvAnswered:
			return t.Answers[len(t.Answers)-1].Answer.Choice == onceFail
		case protocol.EvAttemptFailed:
			return false
		}
	}
	return false
}

// conclude turns the outcome of a visit into events and blocks.
func (d *driver) conclude(ctx context.Context, w *worker, end *outcome) ([]cas.Draft, []cas.Block, error) {
	v, err := d.s.Visit(w.step)
	if err != nil {
		return nil, nil, err
	}
	role := d.roleOf(v)
	var failure *protocol.Failure
	always := v.Begun.Via == protocol.ViaAlways
	switch {
	case end.err == nil:
		return d.completed(w, end, nil)
	case errors.Is(end.err, protocol.ErrLeft) && always:
		failure = &protocol.Failure{Err: protocol.ErrLeft, Detail: end.err.Error(), ErrorInfo: protocol.ErrorInfo{Code: protocol.ErrLeft.Code, Phase: "always", Message: protocol.ErrLeft.Message}}
		return d.failed(w, &v, end, failure)
	case errors.Is(end.err, protocol.ErrLeft): // whatever else ended it: nothing goes on behind an alarm
		return d.parkVisit(w.step, end.err.Error(), protocol.ErrLeft.Code), nil, nil
	case errors.Is(end.err, protocol.ErrWaiting) && always:
		failure = errCannotAsk
	case errors.Is(end.err, protocol.ErrWaiting):
		if v.Mode != rules.Waits && v.Mode != rules.Ready { // ready: what it waits for came before this report
			return d.parkVisit(w.step, fmt.Sprintf("the performer waits but said not for what: %v", end.err), ""), nil, nil
		}
		return nil, nil, nil
	case end.timedOut:
		failure = &protocol.Failure{Class: "timeout", Keeps: role.Action == protocol.ActPrompt, ErrorInfo: protocol.ErrorInfo{Code: "timeout", Phase: string(role.Action),
			Message: "timed out after " + (time.Duration(role.Timeout) * time.Microsecond).String()}}
		if waited, ok := strings.CutSuffix(end.err.Error(), ": "+context.Canceled.Error()); ok {
			failure.Detail = waited // what it waited for
		}
	case errors.As(end.err, &failure) && !failure.Suspend:
	case ctx.Err() != nil || errors.Is(end.err, context.Canceled) || errors.Is(end.err, errStopped) || errors.Is(end.err, cas.ErrAged):
		return nil, nil, nil // interrupted, or the run stopped: tried again when it goes on
	case errors.Is(end.err, protocol.ErrFenced):
		return nil, nil, end.err
	case always:
		failure = notBegun(end.err)
	default:
		return d.parkVisit(w.step, end.err.Error(), protocol.CodeOf(end.err)), nil, nil
	}
	now := d.e.now()
	if at, ok := rules.RetryAt(role.Retry, failure.Class, v.Begun.Attempt, now, rand.Float64()); ok && d.s.MayAwait(v.Begun.Via, now, at) {
		failed := attemptFailed(&v, failure, at)
		failed.Keeps = failed.Keeps && !role.Retry.Anew
		return []cas.Draft{{Step: w.step, Data: failed}}, nil, nil
	}
	return d.failed(w, &v, end, failure)
}

// failed ends a visit that failed and is not tried again.
func (d *driver) failed(w *worker, v *rules.Visit, end *outcome, f *protocol.Failure) ([]cas.Draft, []cas.Block, error) {
	failed := attemptFailed(v, f, 0)
	info := f.ErrorInfo
	info.Message = clean(info.Message)
	facts, blocks, err := d.completed(w, end, &info)
	return append([]cas.Draft{{Step: w.step, Data: failed}}, facts...), blocks, err
}

// attemptFailed is the event of an attempt that failed, with what differs between machines; retryAt is 0 for never.
func attemptFailed(v *rules.Visit, f *protocol.Failure, retryAt int64) protocol.AttemptFailed {
	x := protocol.AttemptFailed{Attempt: v.Begun.Attempt, Error: f.ErrorInfo, RetryAt: retryAt, Keeps: f.Keeps}
	x.Error.Message = clean(f.Message)
	if f.Detail != "" {
		x.Error.Message += ": " + clean(f.Detail)
	}
	return x
}

// clean is a text that can become JSON and CBOR.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// parkVisit suspends one visit; the others go on.
func (d *driver) parkVisit(step, why, code string) []cas.Draft {
	return []cas.Draft{{Step: step, Data: protocol.SuspendedBy{Reason: protocol.ByError, Detail: protocol.NewText(why), Code: code}}}
}

func (d *driver) roleOf(v rules.Visit) protocol.Role {
	r, _ := d.s.Program().Workflow.RoleNamed(v.Begun.Role)
	if r == nil {
		return protocol.Role{Name: v.Begun.Role}
	}
	return *r
}
