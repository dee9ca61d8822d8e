package service

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
	"wf/service/trace"
	"wf/store"
)

// A Local answers for a store of this machine, in process. Its fields are set before its first use.
type Local struct {
	*compose.Setup
	Store   store.Store
	Engine  *engine.Engine
	Keeper  Keeper // nil where nothing is driven: runs are shown, and not moved
	Catalog compose.Catalog
	Dir     string // workspace of the runs that it starts
	// Amend adds what a daemon knows to the list of workflows; nil is nothing.
	Amend func([]api.Workflow) []api.Workflow
	// Agree asks the person at this process whether a fork of a run from elsewhere, which runs acts in a
	// workspace, may go on. nil is where no person can be asked.
	Agree func(ctx context.Context, run protocol.RunID, workspace string, acts []string) (bool, error)

	// moving is held for reading from before a commit by which a run goes on until the keeper has
	// the run. Suspend waits for that: else it would find a run that moves, and no drive to stop.
	moving sync.RWMutex

	index index // see indexed
}

// A Keeper drives the runs of a Local, in the background.
type Keeper interface {
	// Keep drives a run until it is over or waits. A run that is driven already is driven once
	// more afterwards.
	Keep(run protocol.RunID, o engine.DriveOptions)
	// Drives reports whether this process drives a run, or is about to.
	Drives(run protocol.RunID) bool
	// Resume is Keep for a run of a status, and returns once an event of it was recorded, or there
	// was nothing to do. A run that is driven already is an error wrapping protocol.ErrRunLive.
	Resume(ctx context.Context, run protocol.RunID, status protocol.RunStatus, o engine.DriveOptions) error
	// Suspend ends the drive of a run, and returns when that is recorded. A run that is not driven
	// here is left alone; one that another process drives is an error wrapping protocol.ErrRunLive.
	Suspend(ctx context.Context, run protocol.RunID) error
}

var _ api.Service = (*Local)(nil)

// Workflows lists what lies in the served directories.
func (l *Local) Workflows(context.Context) ([]api.Workflow, error) {
	found, err := l.Catalog.List()
	out := make([]api.Workflow, len(found))
	for i, f := range found {
		if out[i] = f.Entry(); out[i].Schedule != nil {
			out[i].Firings = protocol.Firings(f.Name, l.FiringPlace(f))
		}
	}
	if l.Amend != nil && err == nil {
		out = l.Amend(out)
	}
	return out, err
}

// Run reads a run with some of its steps.
func (l *Local) Run(ctx context.Context, run protocol.RunID, w api.Window) (*api.Run, error) {
	v, err := l.Engine.ViewWindow(ctx, run, w)
	if err == nil {
		l.drives(run, v.Status, &v.Driving)
	}
	return v, err
}

// Step reads one visit.
func (l *Local) Step(ctx context.Context, run protocol.RunID, step string) (*api.RunStep, error) {
	v, err := l.Engine.ViewStep(ctx, run, step)
	if err != nil {
		return nil, err
	}
	x, err := query.StepOf(v, step)
	if err != nil {
		return nil, err
	}
	return &api.RunStep{Schema: "wf.step/v1", Run: v.ID, Step: x}, nil
}

// Graph draws the workflow of a run with the path it took.
func (l *Local) Graph(ctx context.Context, run protocol.RunID) ([]byte, error) {
	return query.Graph(ctx, l.Engine, run)
}

// Messages is what a visit was sent first.
func (l *Local) Messages(ctx context.Context, run protocol.RunID, step string) (*api.Messages, error) {
	return query.Messages(ctx, l.Engine, run, step)
}

// VisitDiff compares a visit with the one of the same role, and the same item, before it.
func (l *Local) VisitDiff(ctx context.Context, run protocol.RunID, step string) (*api.VisitDiff, error) {
	return query.VisitDiff(ctx, l.Engine, run, step)
}

// Diff compares two runs.
func (l *Local) Diff(ctx context.Context, left, right protocol.RunID) (*api.Diff, error) {
	a, err := l.Engine.View(ctx, left)
	if err != nil {
		return nil, err
	}
	b, err := l.Engine.View(ctx, right)
	if err != nil {
		return nil, err
	}
	d, err := query.Diff(ctx, l.Store, a, b)
	return &d, err
}

// Explain decides again why a step was entered.
func (l *Local) Explain(ctx context.Context, run protocol.RunID, step string) (*api.Explanation, error) {
	return query.Explain(ctx, l.Engine, run, step)
}

// ExplainRun decides again why a run ended, or is where it is.
func (l *Local) ExplainRun(ctx context.Context, run protocol.RunID) (*api.RunExplanation, error) {
	return query.ExplainRun(ctx, l.Engine, run)
}

// Cache compares every prompt of a run with the one before it.
func (l *Local) Cache(ctx context.Context, run protocol.RunID) (*api.Cache, error) {
	if _, _, err := l.Store.Tip(ctx, run); err != nil {
		return nil, err
	}
	return query.Cache(ctx, l.Engine, run)
}

// drives corrects what the lock of a run tells: the daemon is about to drive what it was given.
func (l *Local) drives(run protocol.RunID, status protocol.RunStatus, d *api.Driving) {
	if (status == protocol.Running || status == protocol.Queued) && l.Keeper != nil && l.Keeper.Drives(run) {
		*d = api.Driving{Driven: new(true)}
	}
}

// Trace writes the spans of a run.
func (l *Local) Trace(ctx context.Context, run protocol.RunID, o api.TraceOptions, w io.Writer) error {
	return l.Tracer().Write(ctx, run, o, func(line []byte) error {
		_, err := w.Write(line)
		return err
	})
}

// Tracer reads traces of the store.
func (l *Local) Tracer() trace.Reader {
	return trace.Reader{Engine: l.Engine, Messages: func(ctx context.Context, run protocol.RunID, step string) ([]protocol.Message, error) {
		m, err := l.Messages(ctx, run, step)
		if err != nil {
			return nil, err
		}
		return m.Prompt.Messages, nil
	}}
}

// Looks are what a run recorded of the files of its workspace.
func (l *Local) Looks(ctx context.Context, run protocol.RunID) (*api.Looks, error) {
	return query.Looks(ctx, l.Engine, run)
}

// Verify proves a run by hash, and notes its head outside of the store where it is sound.
func (l *Local) Verify(ctx context.Context, run protocol.RunID) (*protocol.Report, error) {
	if _, _, err := l.Store.Tip(ctx, run); err != nil {
		return nil, err
	}
	o := cas.VerifyOptions{Run: run}
	state := cas.StateDir(os.Getenv)
	if state != "" {
		var err error
		if o.LastSeen, err = cas.LoadPinnedHeads(state, l.Store.Dir()); err != nil {
			return nil, err
		}
	}
	r, err := store.Verify(ctx, l.Store, o)
	if err == nil && r.OK {
		err = l.Refold(ctx, l.Store, &r, false)
	}
	if err != nil {
		return nil, err
	}
	if r.OK && state != "" {
		if err := cas.SeeFound(ctx, state, l.Store.Dir(), r.Heads); err != nil {
			return nil, fmt.Errorf("the heads were not noted outside of the store: %w", err)
		}
	}
	return query.Report(r), nil
}

// Cost sums what model calls used.
func (l *Local) Cost(ctx context.Context, run protocol.RunID, by string) (*api.Cost, error) {
	table, err := l.Prices()
	if err != nil {
		return nil, err
	}
	return query.Cost(ctx, l.Store, run, by, table)
}

// Tasks lists the tasks of a run.
func (l *Local) Tasks(ctx context.Context, run protocol.RunID, p api.Part) (*api.TaskList, error) {
	table, err := l.Prices()
	if err != nil {
		return nil, err
	}
	return query.TaskList(ctx, l.Store, run, p, table)
}

// Task is the task of a step.
func (l *Local) Task(ctx context.Context, run protocol.RunID, step string) (*api.RunTask, error) {
	table, err := l.Prices()
	if err != nil {
		return nil, err
	}
	return query.Task(ctx, l.Store, run, step, table)
}
