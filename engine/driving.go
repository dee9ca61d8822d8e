package engine

import (
	"context"

	"wf/protocol"
)

// Driving tells whether a process drives a run whose status is running. The journal cannot: a
// process that was killed writes nothing.
type Driving struct {
	Driven *bool `json:"driven,omitempty"` // nil: the run is not running, or it is not known
	Idle   Idle  `json:"idle,omitempty"`   // why no process drives it; "" unless Driven is false
}

// Settled reports whether it stays as it is until the next event of the run: a process can be killed
// between two events.
func (d Driving) Settled() bool { return d.Driven == nil }

// Idle is why no process drives a run that could go on.
type Idle string

const (
	// Interrupted is a run whose process was killed, lost its machine or could not write.
	Interrupted Idle = "interrupted"
	// NotStarted is a run that was begun or forked, and that no process has driven yet.
	NotStarted Idle = "not_started"
	// Answered is a run that got what it waited for, while no process was there to go on.
	Answered Idle = "answered"
)

// Driving sees whether a process drives a run. A sub-workflow is driven by the process that drives
// the run it belongs to. The answer belongs to s: where the run has moved since, nothing is known.
// What hinders the look is a warning, and makes nothing known either.
func (e *Engine) Driving(ctx context.Context, run protocol.RunID, s *State) Driving {
	if s.Status() != protocol.Running {
		return Driving{}
	}
	driven, err := e.driven(ctx, run, s)
	if err != nil {
		e.warn(err)
		return Driving{}
	}
	if driven {
		return Driving{Driven: &driven}
	}
	idle, err := e.idle(ctx, run, s.Seq)
	if err != nil {
		e.warn(err)
	}
	if idle == "" {
		return Driving{}
	}
	return Driving{Driven: &driven, Idle: idle}
}

// driven looks at the lock of a run, and then at those of the runs that it is a part of.
func (e *Engine) driven(ctx context.Context, run protocol.RunID, s *State) (bool, error) {
	driven, err := e.Store.Driven(run)
	if err != nil || driven || s.Info.Parent == nil || s.Info.Forked.Defined() {
		return driven, err
	}
	parent := s.Info.Parent.Run
	s, err = e.State(ctx, parent)
	if err != nil {
		return false, err
	}
	return e.driven(ctx, parent, s)
}

// idle is what the newest event, seq, tells of a run that no process drives; "" where it is not
// the newest any more.
func (e *Engine) idle(ctx context.Context, run protocol.RunID, seq protocol.Seq) (idle Idle, err error) {
	for x, err := range e.Store.After(ctx, run, seq-1) {
		switch {
		case err != nil, x.Seq > seq:
			return "", err
		case x.Type == protocol.EvRunStarted, x.Type == protocol.EvForked, x.Type == protocol.EvLimitChanged:
			idle = NotStarted
		case x.Type == protocol.EvAnswered:
			idle = Answered
		default:
			idle = Interrupted
		}
	}
	return idle, nil
}
