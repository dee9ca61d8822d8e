package service

import (
	"cmp"
	"context"

	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
)

// Launch begins a run of a valid workflow, whose path is absolute, and has it driven.
func (l *Local) Launch(ctx context.Context, d compose.Definition, inputs map[string]any, x engine.Launch) (run protocol.RunID, fresh bool, err error) {
	if x.Inputs, err = d.Program.Inputs(inputs); err != nil {
		return "", false, err
	}
	return l.Begin(ctx, d, x)
}

// Fits is nil if Begin would begin a run, as far as that is known without the store, else why not. Nothing is written.
func (l *Local) Fits(ctx context.Context, d compose.Definition, x engine.Launch) error {
	x, err := l.launching(ctx, d, x)
	if err != nil {
		return err
	}
	return l.Engine.Fits(x)
}

// launching completes what is to be begun.
func (l *Local) launching(ctx context.Context, d compose.Definition, x engine.Launch) (_ engine.Launch, err error) {
	if x.Models, _, err = l.ResolveModels(ctx, d.Program, x.Models); err != nil {
		return x, err
	}
	if err = l.SecretsSet(d.Program); err != nil {
		return x, err
	}
	x.Program, x.Source, x.File = d.Program, d.Source, d.Path
	x.Workspace = cmp.Or(x.Workspace, l.Dir)
	if x.Description == "" {
		x.Description = d.Program.Workflow.Description
	}
	return x, nil
}

// Begin is Launch with inputs that Program.Inputs gave, in a workspace of x, if that names one.
func (l *Local) Begin(ctx context.Context, d compose.Definition, x engine.Launch) (run protocol.RunID, fresh bool, err error) {
	if x, err = l.launching(ctx, d, x); err != nil {
		return "", false, err
	}
	l.moving.RLock()
	defer l.moving.RUnlock()
	if run, fresh, err = l.Engine.Begin(ctx, x); err != nil || !fresh {
		return run, fresh, err
	}
	l.Keeper.Keep(run, engine.DriveOptions{By: caller(ctx)})
	return run, true, nil
}

// A Launching is a run that is about to begin, as for Begin.
type Launching struct {
	compose.Definition
	engine.Launch
}

// BeginAll is Begin for several runs, in their order; see engine.BeginAll.
func (l *Local) BeginAll(ctx context.Context, all []Launching) (begun []engine.Begun, err error) {
	some := make([]engine.Launch, 0, len(all))
	var failed error // of the run behind some
	for _, x := range all {
		var one engine.Launch
		if one, failed = l.launching(ctx, x.Definition, x.Launch); failed != nil {
			break
		}
		some = append(some, one)
	}
	l.moving.RLock()
	defer l.moving.RUnlock()
	begun, err = l.Engine.BeginAll(ctx, some)
	for _, b := range begun {
		if b.Fresh {
			l.Keeper.Keep(b.Run, engine.DriveOptions{By: caller(ctx)})
		}
	}
	return begun, cmp.Or(err, failed)
}
