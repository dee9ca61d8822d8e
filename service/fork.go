package service

import (
	"context"
	"fmt"

	"wf/api"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/query"
)

// Fork makes a new run, and has it driven unless f.Hold is set. What would go on although others wrote it is
// refused, see forkforeign.go.
func (l *Local) Fork(ctx context.Context, run protocol.RunID, f api.Fork) (made api.Accepted, err error) {
	if err := mayBring(ctx, f); err != nil {
		return made, err
	}
	v, err := l.Engine.View(ctx, run)
	if err != nil {
		return made, err
	}
	o := engine.ForkOptions{Note: f.Note, By: caller(ctx), Hold: f.Hold}
	if o.Limits, err = limitsOf(ctx, f.Limits); err != nil {
		return made, err
	}
	if f.Step == "" {
		last := lastEnded(v)
		if last == nil {
			return made, protocol.ErrUsage.With("wf run starts it anew", "no step of run %s has ended: there is nothing to keep", run)
		}
		f.Step, f.After, o.At = last.ID, true, last.Ended
	} else if o.At, err = ForkPoint(ctx, l.Store, run, f.Step, f.After); err != nil {
		return made, err
	}
	if err := l.forkDefinition(ctx, run, f, &o); err != nil {
		return made, err
	}
	if f.Files {
		if o.Files, err = l.forkFiles(ctx, run, f, o.At); err != nil {
			return made, err
		}
		o.LeftOut = func(what string) { made.Warnings = append(made.Warnings, "not in the files of the fork: "+what) }
	}
	left := stateBefore(v, f.Step, f.After)
	if o.Dir, err = l.forkPlace(ctx, v, left, f); err != nil {
		return made, err
	}
	o.Elsewhere = l.mayGoOn(ctx, run, f)
	l.moving.RLock()
	defer l.moving.RUnlock()
	if made.ID, err = l.Engine.Fork(ctx, run, o); err != nil {
		return made, err
	}
	if _, made.Seq, err = l.Store.Tip(ctx, made.ID); err != nil {
		return made, err
	}
	made.Warnings = cut(made.Warnings)
	if o.Dir == "" && !f.Files {
		made.Warnings = differs(ctx, v.Info.Workspace, left)
	}
	l.Note(ctx, l.Store, made.ID)
	if !f.Hold && l.Keeper != nil {
		l.Keeper.Keep(made.ID, engine.DriveOptions{By: caller(ctx)})
	}
	return made, nil
}

// forkDefinition puts what the fork goes on under, and its models, into o.
func (l *Local) forkDefinition(ctx context.Context, run protocol.RunID, f api.Fork, o *engine.ForkOptions) error {
	var p *lang.Program
	switch {
	case f.With != nil:
		d, err := l.Given(f.With)
		if err != nil {
			return err
		}
		if o.Foreign, err = l.brought(ctx, d, f.Hold); err != nil {
			return err
		}
		p, o.With, o.Source, o.File = d.Program, d.Program, d.Source, d.Path
	case len(f.Models) > 0:
		st, err := l.Engine.State(ctx, run)
		if err != nil {
			return err
		}
		p = st.Program()
	}
	if len(f.Models) == 0 {
		return nil
	}
	models, err := l.modelsFor(ctx, p, f.Models)
	if err != nil {
		return err
	}
	if err := l.KnownModels(models); err != nil {
		return err
	}
	o.Models, _, err = l.ResolveModels(ctx, p, models)
	return err
}

// lastEnded is the step of a run that ended last, nil before one did.
func lastEnded(v *api.Run) (last *api.Step) {
	for _, s := range v.Steps {
		if s.Ended > 0 && (last == nil || s.Ended > last.Ended) {
			last = s
		}
	}
	return last
}

// ForkPoint is the newest event that the fork shares: the one before the step began, or with
// after the one that ended it.
func ForkPoint(ctx context.Context, s engine.Store, run protocol.RunID, step string, after bool) (protocol.Seq, error) {
	fan := false
	for e, err := range s.After(ctx, run, 0) {
		if err != nil {
			return 0, err
		}
		fan = fan || e.StepName() == protocol.FirstItem(step)
		if e.StepName() != step {
			continue
		}
		switch {
		case !after && e.Type == protocol.EvStepStarted:
			return e.Seq - 1, nil
		case after && e.Type == protocol.EvStepCompleted:
			return e.Seq, nil
		}
	}
	if after {
		return 0, protocol.ErrUsage.With("without --after the fork does it anew", "%s:%s has not ended", run, step)
	}
	return 0, query.NoStep(run, step, fan)
}

// forkFiles is the tree that a fork begins with: as the step found the files, else as they were recorded last before the event
// that the fork shares.
func (l *Local) forkFiles(ctx context.Context, run protocol.RunID, f api.Fork, at protocol.Seq) (root protocol.Link, err error) {
	looks, err := query.Looks(ctx, l.Engine, run)
	if err != nil {
		return root, err
	}
	shot, err := looks.Before(f.Step, f.After, at)
	if err != nil {
		return root, err
	}
	return shot.Root, nil
}

// warningsMax is how many files are named that a fork does not get.
const warningsMax = 20

func cut(warnings []string) []string {
	if more := len(warnings) - warningsMax; more > 0 {
		warnings = append(warnings[:warningsMax:warningsMax], fmt.Sprintf("and %d more", more))
	}
	return warnings
}

// stateBefore is what the workspace was when the fork's first step began: as the newest step
// before it left it, nil where that is not known.
func stateBefore(v *api.Run, step string, after bool) *protocol.GitState {
	var left *protocol.GitState
	for _, s := range v.Steps {
		if s.ID == step && !after {
			break
		}
		if s.Workspace != nil {
			left = s.Workspace
		}
		if s.ID == step {
			break
		}
	}
	return left
}
