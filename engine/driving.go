package engine

import (
	"context"
	"fmt"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

type claimKey struct{}

// fenceOf is that of the claim under which ctx is driven; zero for none.
func fenceOf(ctx context.Context) (f cas.Fence) {
	if c, ok := ctx.Value(claimKey{}).(cas.Claim); ok {
		f = c.Fence()
	}
	return f
}

// outageGrace is how long a drive that is to end waits for a store that cannot be reached.
var outageGrace = 5 * time.Second

// waitOut has a drive wait for a store that cannot be reached, until it is to end; end is called behind it.
func waitOut(ctx context.Context) (_ context.Context, end context.CancelFunc) {
	outer := cas.Patience(ctx) // of the run that this one is a part of
	if outer == nil {
		outer = context.Background()
	}
	until, over := context.WithCancel(outer)
	stop := context.AfterFunc(ctx, func() {
		wait := time.AfterFunc(outageGrace, over)
		context.AfterFunc(until, func() { wait.Stop() })
	})
	return cas.Patient(ctx, until), func() {
		stop()
		over()
	}
}

// claim claims a run for a drive, also for one that is to end at once: that is recorded.
func (e *Engine) claim(ctx context.Context, run protocol.RunID) (cas.Claim, error) {
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), outageGrace)
		defer cancel()
		ctx = late
	}
	return e.Store.Claim(ctx, run)
}

// letGo releases a claim. Where that fails nothing is lost: the claim ends with this process.
func (e *Engine) letGo(ctx context.Context, run protocol.RunID, c cas.Claim) {
	if err := c.Release(context.WithoutCancel(ctx)); err != nil {
		e.warn(fmt.Errorf("run %s: the claim on it is not released yet: %w", run, err))
	}
}

// Driving sees whether a process drives a run. A sub-workflow is driven by the process that drives
// the run it belongs to. The answer belongs to s: where the run has moved since, nothing is known.
// What hinders the look is a warning, and makes nothing known either.
func (e *Engine) Driving(ctx context.Context, run protocol.RunID, s *rules.State) api.Driving {
	if s.Status() != protocol.Running && s.Status() != protocol.Queued {
		return api.Driving{}
	}
	driven, err := e.driven(ctx, run, s, 0)
	var idle api.Idle
	switch {
	case err != nil || driven:
	case s.Status() == protocol.Queued:
		idle = api.Unattended
	default:
		idle, err = e.idle(ctx, run, s.Seq)
	}
	if err != nil {
		e.warn(err)
	}
	if err != nil || !driven && idle == "" {
		return api.Driving{}
	}
	d := api.Driving{Driven: &driven, Idle: idle}
	if !driven && parentOf(s) == nil {
		if d.Lacks, err = e.lacking(ctx, Standing(run, s).Needs); err != nil {
			e.warn(err)
		}
	}
	return d
}

// lacking is what is missing of what a run needs where least is: here, or at a process that looks for runs to drive.
func (e *Engine) lacking(ctx context.Context, needs []string) ([]string, error) {
	least := protocol.Lacking(needs, e.Offers())
	q := e.queue()
	if q == nil || len(least) == 0 {
		return least, nil
	}
	offers, err := q.Offers(ctx)
	if err != nil {
		return nil, err
	}
	for _, have := range offers {
		if lacks := protocol.Lacking(needs, have); len(lacks) < len(least) {
			least = lacks
		}
	}
	return least, nil
}

// driven looks at the lock of a run, and then at those of the runs that it is a part of.
func (e *Engine) driven(ctx context.Context, run protocol.RunID, s *rules.State, depth int) (bool, error) {
	if depth > deepest {
		return false, inCircles(run)
	}
	driven, err := e.Store.Driven(ctx, run)
	if err != nil || driven || s.Info.Parent == nil || s.Info.Forked.Defined() {
		return driven, err
	}
	parent := s.Info.Parent.Run
	s, err = e.State(ctx, parent)
	if err != nil {
		return false, err
	}
	return e.driven(ctx, parent, s, depth+1)
}

// idle is what the newest event, seq, tells of a run that no process drives; "" where it is not
// the newest any more.
func (e *Engine) idle(ctx context.Context, run protocol.RunID, seq protocol.Seq) (idle api.Idle, err error) {
	for x, err := range e.Store.After(ctx, run, seq-1) {
		switch {
		case err != nil, x.Seq > seq:
			return "", err
		case x.Type == protocol.EvRunStarted, x.Type == protocol.EvAdmitted, x.Type == protocol.EvFilesTracked, x.Type == protocol.EvFilesLaid, x.Type == protocol.EvForked, x.Type == protocol.EvLimitChanged:
			idle = api.NotStarted
		case x.Type == protocol.EvAnswered:
			idle = api.Answered
		default:
			idle = api.Interrupted
		}
	}
	return idle, nil
}
