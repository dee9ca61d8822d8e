package service

import (
	"context"
	"errors"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
)

// CopyStore is a store of any kind, as Copy uses it.
type CopyStore interface {
	engine.Store
	cas.Keeper
}

// CopyOptions say what Copy takes over; the zero value is all of a store.
type CopyOptions struct {
	// Runs are copied, each with what it was forked from, the runs of its sub-workflows, and the memories of its roles; nil is all
	// runs, with all memories, the journals of sinks, and the tombstones.
	Runs []protocol.RunID
	// Pins are those of the destination: a run that was there and goes on came from elsewhere from then on. nil notes nothing.
	Pins *cas.Pins
	// Progress is called after each commit; nil is not.
	Progress func(cas.CopyProgress)
}

// Copy brings runs from one store to another; see cas.Copy for what becomes of them, and for the errors. A run that a process drives
// at the source comes up to its newest durable event, and is one of Driven. A run that is there already goes on only while no
// process drives it at the destination, else it is one of Faulty, and its error wraps protocol.ErrRunLive.
//
// What came is from elsewhere: it goes on at the destination once it was adopted, see Adopting.
func Copy(ctx context.Context, from, to CopyStore, o CopyOptions) (*cas.Copied, error) {
	e := &engine.Engine{Store: from}
	var stands func(context.Context, protocol.RunID) (cas.Standing, protocol.RunID, error)
	if _, ok := to.(engine.Queue); ok {
		stands = e.Arriving
	}
	return cas.Copy(ctx, from, to, cas.CopyOptions{
		Runs: o.Runs, Progress: o.Progress, Stands: stands,
		Kin: func(ctx context.Context, run protocol.RunID) ([]protocol.RunID, []string, error) {
			children, err := e.Descendants(ctx, run)
			if err != nil {
				return nil, nil, err
			}
			memories, err := memoriesOf(ctx, e, run)
			return children, memories, err
		},
		Driven: from.Driven,
		Forward: func(ctx context.Context, run protocol.RunID) (func() error, error) {
			claim, err := to.Claim(ctx, run)
			if err != nil {
				return nil, err
			}
			done := func() error { return claim.Release(context.WithoutCancel(ctx)) }
			if o.Pins != nil {
				err = o.Pins.Disown(ctx, []protocol.RunID{run})
			}
			if err != nil {
				return nil, errors.Join(err, done())
			}
			return done, nil
		},
	})
}

// memoriesOf are the scopes of the memories that the roles of a run have.
func memoriesOf(ctx context.Context, e *engine.Engine, run protocol.RunID) (out []string, err error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	flow := s.Program().Workflow
	for _, r := range flow.Roles {
		if r.Memory != nil {
			out = append(out, compose.AgentScope(flow.Name, r))
		}
	}
	return out, nil
}
