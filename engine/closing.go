package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// How a run with always roles ends:
//
//	the graph ends, or Cancel ──► closing ──► its always roles ──► the last event
//
// What of the graph still runs is stopped before the first of them begins. Their bounds, or a second Cancel, skip what is
// left of them. A visit of theirs that cannot begin, go on or ask has failed: nothing waits for a person any more.

// ending is what is recorded of a run that has come to its end: its last event, or that it closes.
func (d *driver) ending(v *rules.Verdict) (x cas.Draft, blocks []cas.Block, last bool, err error) {
	if d.s.Closing != nil {
		data, err := d.s.Last()
		return cas.Draft{Data: data}, nil, true, err
	}
	result, outputs, blocks, err := d.result(v)
	if err != nil || len(d.s.Program().Workflow.Always) == 0 {
		return cas.Draft{Data: protocol.Finished{Status: v.Status, Result: result}}, blocks, true, err
	}
	c, err := d.s.Closed(v)
	c.Result, c.Outputs = result, outputs
	return cas.Draft{Data: c}, blocks, false, err
}

// ended is called when what ends a drive is on disk. Where another process had the run close first, the drive goes on
// with that: what it was to end with was dropped.
func (d *driver) ended(ctx context.Context) (goesOn bool) {
	if d.s.Closing == nil || d.s.Stopped || ctx.Err() != nil {
		return false
	}
	d.over, d.last, d.breach, d.unready = false, false, nil, nil
	return true
}

// passed reports whether a visit is over because its run closes: one of the graph, or, once they are skipped, any.
func (d *driver) passed(step string) bool {
	return d.s.Closing != nil && (d.s.Closing.Skipped || !d.isAlways(step))
}

// stopping reports whether the run closes and something of its graph may still act: visits here, or open sub-workflows.
func (d *driver) stopping() bool {
	if d.s.Closing == nil || d.s.Closing.Begun > 0 {
		return false
	}
	if !d.cleared && len(childrenOf(d.s, d.run)) > 0 {
		return true
	}
	for step := range d.work {
		if d.passed(step) {
			return true
		}
	}
	return false
}

func (d *driver) isAlways(step string) bool {
	v, err := d.s.Visit(step)
	return err == nil && v.Begun.Via == protocol.ViaAlways
}

// errCannotAsk is the failure of an always role that asks.
var errCannotAsk = &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "cannot_ask", Phase: "always",
	Message: "an always role asked for a person or a signal: it cannot wait"}}

// notBegun is the failure of an always role that could not be performed. Its Detail holds what differs between machines, and is
// said in the journal alone.
func notBegun(err error) *protocol.Failure {
	return &protocol.Failure{Err: err, Detail: err.Error(), ErrorInfo: protocol.ErrorInfo{Code: cmp.Or(protocol.CodeOf(err), "cannot_go_on"), Phase: "always",
		Message: "what the role needs is not there"}}
}

// failAlways ends a visit of an always role that has failed without being performed.
func (d *driver) failAlways(b *batch, step string, f *protocol.Failure) error {
	v, err := d.s.Visit(step)
	if err != nil {
		return err
	}
	facts, blocks, err := d.failed(&worker{step: step, started: d.e.now()}, &v, &outcome{}, f)
	if err != nil {
		return err
	}
	b.add(d, blocks...)
	for _, x := range facts {
		if err := b.draft(d, x.Step, x.Data); err != nil {
			return err
		}
	}
	return nil
}

// skipRest skips the always roles that have not ended.
func (d *driver) skipRest(ctx context.Context, b *rules.Breach) error {
	why := fmt.Sprintf("always roles have %d attempts together", b.Max)
	if b.Limit == rules.BoundTime {
		why = fmt.Sprintf("always roles have %s together", time.Duration(b.Max)*time.Microsecond)
	}
	return d.advance(context.WithoutCancel(ctx), []cas.Draft{{Data: protocol.ClosingSkipped{Code: protocol.SkippedByBudget, Reason: why}}}, nil)
}

// costs are those of the events that are kept of a visit of the graph when its run closes: what it has cost.
func costs(data []protocol.Data) (kept []protocol.Data) {
	for _, x := range data {
		if _, ok := x.(protocol.Usage); ok {
			kept = append(kept, x)
		}
	}
	return kept
}

// persistence is what a cancellation does to a run that closes already.
type persistence int

const (
	cancelOnce  persistence = iota // nothing
	cancelAgain                    // skips what is left, if it is the second
	cancelSkip                     // skips what is left
)

// cancelled is what Cancel writes. A run in which something was performed closes.
func (e *Engine) cancelled(ctx context.Context, run protocol.RunID, s *rules.State, by, reason string, how persistence) ([]cas.Draft, error) {
	skipped := protocol.ClosingSkipped{Code: protocol.SkippedByPerson, By: by, Reason: reason}
	last := cas.Draft{Data: protocol.CancelledBy{By: by, Reason: reason}}
	c := s.Closing
	switch {
	case c != nil && how == cancelOnce:
		return nil, nil
	case c == nil && (len(s.Program().Workflow.Always) == 0 || s.Totals.Steps == 0):
		return []cas.Draft{last}, nil
	}
	mayGoOn, err := e.mayClose(ctx, run)
	if err != nil {
		return nil, err
	}
	if c != nil {
		if first := c.Status != protocol.Cancelled && !c.Asked; how == cancelAgain && first && mayGoOn {
			return []cas.Draft{{Data: protocol.CancelAsked{By: by, Reason: reason}}}, nil
		}
		data, err := s.Last()
		return []cas.Draft{{Data: skipped}, {Data: data}}, err
	}
	closing := cas.Draft{Data: protocol.Closing{Status: protocol.Cancelled, Message: protocol.NewText(reason), By: by}}
	if mayGoOn {
		return []cas.Draft{closing}, nil
	}
	skipped.Code, skipped.Reason = protocol.SkippedForeign, "the run is not driven here: it came from elsewhere, or its store was restored and is not adopted"
	return []cas.Draft{closing, {Data: skipped}, last}, nil
}

// mayClose reports whether a run may be driven here to its end. What cannot be told now is an error: nothing is skipped for it.
func (e *Engine) mayClose(ctx context.Context, run protocol.RunID) (bool, error) {
	err := e.Own(ctx, run)
	if errors.Is(err, protocol.ErrForeign) || errors.Is(err, protocol.ErrRolledBack) || errors.Is(err, protocol.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// CloseRuns drives runs that close to their ends. Those that another process drives are left to it.
func (e *Engine) CloseRuns(ctx context.Context, runs []protocol.RunID, by string) error {
	var errs []error
	for _, run := range runs {
		_, err := e.Drive(ctx, run, DriveOptions{By: by})
		if err != nil && !errors.Is(err, protocol.ErrRunLive) && !errors.Is(err, protocol.ErrFinal) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// closeChildren cancels the runs of the open sub-workflows of a run that is over, where these have always roles, and has
// them and their own children close.
func (d *driver) closeChildren(ctx context.Context) error {
	if !d.s.Program().Closes() {
		return nil
	}
	var errs []error
	by := "run " + string(d.run)
	for _, child := range childrenOf(d.s, d.run) {
		s, err := d.e.State(ctx, child)
		if err == nil && s.Program().Closes() {
			var closing []protocol.RunID
			closing, err = d.e.CancelOnce(ctx, child, by, "its parent "+by+" has ended")
			err = errors.Join(err, d.e.CloseRuns(ctx, closing, by))
		}
		if err != nil && !errors.Is(err, protocol.ErrFinal) && !errors.Is(err, protocol.ErrUnknownRun) && !errors.Is(err, protocol.ErrRunDeleted) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
