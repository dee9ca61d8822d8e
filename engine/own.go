package engine

import (
	"context"
	"fmt"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// Own is nil where a run may go on here: it is this user's, by Pins. Else it is an error wrapping
// protocol.ErrForeign or protocol.ErrRolledBack; in a store that is held one wrapping protocol.ErrHeld.
func (e *Engine) Own(ctx context.Context, run protocol.RunID) error {
	if err := e.Store.MayGoOn(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if e.Pins == nil {
		return nil
	}
	return e.Pins.Own(context.WithoutCancel(ctx), run)
}

// note keeps the first event of a run that is about to be begun, or was forked just now, before
// anything of it is performed. Where that fails this process goes on all the same; others will take
// the run for foreign.
func (e *Engine) note(ctx context.Context, run protocol.RunID, head func() (protocol.Link, protocol.Seq)) {
	if e.Pins == nil {
		return
	}
	link, seq := head()
	if err := e.Pins.Begin(ctx, run, link, seq); err != nil {
		e.warn(fmt.Errorf("another process will take run %s for one from elsewhere: %w", run, err))
	}
}

// noteAll is note for the first events of several runs.
func (e *Engine) noteAll(ctx context.Context, runs []newRun, first []*cas.Staged) {
	if e.Pins == nil {
		return
	}
	heads := make([]cas.Head, len(runs))
	for i, b := range runs {
		heads[i].Name = protocol.RunHead(b.run)
		heads[i].Link, heads[i].Seq = first[i].First()
	}
	if err := e.Pins.BeginAll(ctx, heads); err != nil {
		e.warn(fmt.Errorf("another process will take %s that begin now for some from elsewhere: %w", protocol.Plural(len(runs), "run"), err))
	}
}

// deepest is how many runs a run is a part of at most: sub-workflows nest as their files do.
const deepest = 64

// inCircles is the error of runs that name one another, or themselves, as the run that they are a part of, as runs from
// elsewhere may.
func inCircles(run protocol.RunID) error {
	return fmt.Errorf("run %s is a part of more than %d runs, or of itself: %w", run, deepest, protocol.ErrCorrupt)
}

// drove notes what this process has written.
func (d *driver) drove() {
	if d.e.Pins != nil {
		head, seq := d.j.Head()
		d.e.Pins.Drove(d.run, head, seq)
	}
}

// Foreign reports whether a run came from elsewhere, or is older than what was seen of it: it goes on
// here only once it was adopted. A sub-workflow that was never noted is as the run it belongs to.
// What Own finds in the events since the last look is not looked for: lists have many runs. Where it
// cannot be found out the run is foreign, and one warning says why.
func (e *Engine) Foreign(ctx context.Context, h cas.Head, s *rules.State) bool {
	if e.Pins == nil {
		return false
	}
	noted, err := e.noted(ctx, h, s)
	if err != nil && ctx.Err() == nil {
		e.unknownOrigin.Do(func() { e.warn(fmt.Errorf("it is not known which runs came from elsewhere: %w", err)) })
	}
	return !noted
}

func (e *Engine) noted(ctx context.Context, h cas.Head, s *rules.State) (bool, error) {
	for depth := 0; ; depth++ {
		if depth > deepest {
			return false, inCircles(s.Info.Parent.Run)
		}
		noted, err := e.Pins.Noted(ctx, h)
		if err != nil || noted || s.Info.Parent == nil || s.Info.Forked.Defined() {
			return noted, err
		}
		parent := s.Info.Parent.Run
		if h, err = e.Store.Head(ctx, protocol.RunHead(parent)); err != nil || !h.Link.Defined() {
			return false, err
		}
		if s, err = e.State(ctx, parent); err != nil {
			return false, err
		}
	}
}
