package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

type forkFlags struct {
	with     string
	after    bool
	dir      string
	note     string
	worktree bool
	run      bool
	limits   []string
}

func newFork(a *app) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork RUN:STEP",
		Short: "Go on from a step of a run, as a new run",
		Long: `Make a new run that shares everything before a step with the old one, and does that step anew; with
--after it keeps the step and goes on behind it. Nothing is copied, the old run stays as it is. With
--with it goes on under another definition. wf resume, or --run, goes on with it.

A fork of a run that came from elsewhere goes on once its definition was trusted, or is that of --with, and its
workspace is the current directory or that of --dir; with --run you are asked. Else wf store adopt lets it.`,
		Example: `  wf fork -1:coder#2 --run
  wf fork 7K3Q:coder#2 --with new.yaml
  wf fork 7K3Q:test#1 --after --worktree`,
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error { return a.fork(ctx, s, args[0], f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.with, "with", "", "another definition to go on under")
	flags.BoolVar(&f.after, "after", false, "keep the step, go on behind it")
	flags.StringVar(&f.dir, "dir", "", "another workspace")
	flags.BoolVar(&f.worktree, "worktree", false, "a clone of the git repository, at the commit the step found, as the workspace")
	flags.StringVar(&f.note, "note", "", "why, kept with the run")
	flags.StringArrayVar(&f.limits, "limit", nil, "a new limit: steps=60, tokens=500000, cost_usd=3 or duration=30m")
	a.trustFlag(flags)
	flags.BoolVar(&f.run, "run", false, "go on with it at once")
	return cmd
}

func (a *app) fork(ctx context.Context, s *cas.Store, arg string, f forkFlags) error {
	at, err := a.atStore(s).step(ctx, arg)
	if err != nil {
		return err
	}
	e := a.Engine(s, nil)
	v, err := e.View(ctx, at.Run)
	if err != nil {
		return err
	}
	o := engine.ForkOptions{Note: f.note, By: compose.User(), Elsewhere: a.mayFork(ctx, at, f)}
	if o.Limits, err = limitFlags(f.limits); err != nil {
		return err
	}
	if o.At, err = service.ForkPoint(ctx, s, at.Run, at.Step, f.after); err != nil {
		return err
	}
	if err := a.forkDefinition(&o, f.with); err != nil {
		return err
	}
	left := stateBefore(v, at.Step, f.after)
	if o.Dir, err = a.forkPlace(ctx, v, left, f); err != nil {
		return err
	}
	id, err := e.Fork(ctx, at.Run, o)
	if err != nil {
		return err
	}
	a.Note(ctx, s, id)
	if o.Dir == "" {
		a.warnWorkspace(ctx, v.Info.Workspace, left)
	}
	if f.run {
		p := a.atStore(s)
		p.here.GoOn(id)
		_, head, err := s.Tip(ctx, id)
		if err != nil {
			return err
		}
		return a.attend(ctx, p, id, head)
	}
	if a.AsJSON() {
		forked, err := e.View(ctx, id)
		if err != nil {
			return err
		}
		return a.Answer(forked)
	}
	if _, err := fmt.Fprintln(a.Out, id); err != nil {
		return err
	}
	goOn := "wf resume "
	if err := e.Own(ctx, id); errors.Is(err, protocol.ErrForeign) {
		goOn = "wf store adopt "
	} else if err != nil {
		return err
	}
	a.Progress("  next   %s%s · wf diff %s %s", goOn, id, at.Run, id)
	return nil
}

func (a *app) forkDefinition(o *engine.ForkOptions, path string) error {
	if path == "" {
		return nil
	}
	d, err := a.Read(path)
	if err != nil {
		return err
	}
	if o.With, err = a.valid(d); err != nil {
		return err
	}
	o.Source = d.Source
	o.File, err = filepath.Abs(path)
	return err
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

// forkPlace is the workspace of the fork, "" for that of the original.
func (a *app) forkPlace(ctx context.Context, v *api.Run, left *protocol.GitState, f forkFlags) (string, error) {
	switch {
	case f.dir != "" && f.worktree:
		return "", usagef("--dir and --worktree name two workspaces")
	case f.dir != "":
		workspace, _, err := places("", f.dir)
		return workspace, err
	case !f.worktree:
		return "", nil
	case left == nil:
		return "", fail(protocol.ErrUsage, "--dir names another workspace", "--worktree: no step of the run tells of a git commit; it did not run in a git repository")
	}
	dir, err := a.forkCopy(ctx, v, left)
	if err == nil {
		a.Progress("  %s has what was committed at %.8s, and no more", dir, left.Head)
	}
	return dir, err
}
