package engine

import (
	"context"
	"errors"
	"slices"

	"wf/engine/rules"
	"wf/protocol"
)

// Above are the runs that a run belongs to as a sub-workflow, the outermost first, and the run itself. What came
// without the run that it belongs to stands alone.
func (e *Engine) Above(ctx context.Context, run protocol.RunID, s *rules.State) ([]protocol.RunID, error) {
	chain := []protocol.RunID{run}
	for s.Info.Parent != nil && !s.Info.Forked.Defined() {
		parent := s.Info.Parent.Run
		if slices.Contains(chain, parent) {
			return nil, inCircles(parent)
		}
		var err error
		if s, err = e.State(ctx, parent); errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
			break
		} else if err != nil {
			return nil, err
		}
		chain = append(chain, parent)
	}
	slices.Reverse(chain)
	return chain, nil
}

// Trace is the trace of a run that is no sub-workflow.
func (e *Engine) Trace(ctx context.Context, root protocol.RunID) (protocol.TraceID, error) {
	for x, err := range e.Store.After(ctx, root, 0) {
		return protocol.TraceOf(root, x.CID), err
	}
	return protocol.TraceID{}, protocol.ErrUnknownRun.With("", "run %s has no events", root)
}

// traceParent is what a visit hands on to what it starts, "" where the trace cannot be told: a run does not depend
// on it.
func (d *driver) traceParent(ctx context.Context, step string, v rules.Visit) string {
	if d.trace == (protocol.TraceID{}) {
		ctx = context.WithoutCancel(ctx)
		above, err := d.e.Above(ctx, d.run, d.s)
		if err == nil {
			d.trace, err = d.e.Trace(ctx, above[0])
		}
		if err != nil {
			d.e.warn(err)
			return ""
		}
	}
	return protocol.TraceParent(d.trace, d.trace.Span(d.run, step, v.Begun.Attempt, v.Last))
}
