package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

type forkFlags struct {
	api.Fork
	with   string
	dir    string
	run    bool
	limits []string
	models []string
}

func newFork(a *app) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork RUN[:STEP]",
		Short: "Go on from a step of a run, as a new run",
		Long: `Make a new run that shares everything before a step with the old one, and does that step anew; with
--after it keeps the step and goes on behind it. Without STEP it goes on where the run is: nothing that
ended well is done again, only what failed or was cut off, such as with another --model or a corrected
definition of --with. Nothing is copied, the old run stays as it is. wf resume, or --run, goes on with it.

A fork of a run that came from elsewhere goes on once its definition was trusted, or is that of --with, and its
workspace is the current directory or that of --dir or --files; with --run you are asked. Else wf store adopt lets it.

The fork works in the workspace of the run, as it is now. With --files it has a directory of its own, with the files as the run
recorded them when the step began (with --after, when it had ended). It lies outside of every repository, below
$XDG_STATE_HOME/wf/copies, and is shown as the workspace of the fork. What the run does not record is not there: .git, what
.gitignore names (such as node_modules), files with secrets or beyond max_size. The directory goes with the run (wf rm); wf
doctor counts such directories, and wf doctor --clean removes those that were not used for 30 days.

At a server (--hub) a definition of --with needs scope admin, and is not trusted there: a fork under one that runs
commands or reaches the network is made without --run, and goes on once wf store adopt on that machine let it.`,
		Example: `  wf fork -1:coder#2 --run
  wf fork 7K3Q:coder#2 --with new.yaml
  wf fork 7K3Q --model other/model --run
  wf fork 7K3Q:test#1 --after --worktree
  wf fork 7K3Q:coder#2 --files --model other/model --run`,
		Args: takes(1, 1, "a run, or a step of one, such as -1:coder#2"),
		PreRunE: func(*cobra.Command, []string) error {
			err := a.forRunsHere(f.dir, "")
			for _, x := range []struct {
				name string
				on   bool
			}{{"worktree", f.Worktree}, {"files", f.Files}} {
				if url := a.hubURL(); err == nil && url != "" && x.on {
					err = usagef("--%s is for runs on this machine, not for those on %s", x.name, url)
				}
			}
			return err
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			at, err := p.runOrStep(ctx, args[0])
			if err != nil {
				return err
			}
			return a.fork(ctx, p, at, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.with, "with", "", "another definition to go on under")
	flags.BoolVar(&f.After, "after", false, "keep the step, go on behind it")
	flags.StringVar(&f.dir, "dir", "", "another workspace")
	flags.BoolVar(&f.Worktree, "worktree", false, "a clone of the git repository, at the commit the step found, as the workspace")
	flags.BoolVar(&f.Files, "files", false, "a directory of the fork as the workspace, with the files as the run recorded them there")
	flags.StringVar(&f.Note, "note", "", "why, kept with the run")
	flags.StringArrayVar(&f.limits, "limit", nil, "a new limit: steps=60, tokens=500000, cost_usd=3 or duration=30m")
	flags.StringArrayVar(&f.models, "model", nil, "model, or role=model, from here on; given again, the next one to try")
	a.driveFlags(flags)
	flags.BoolVar(&f.run, "run", false, "go on with it at once")
	return cmd
}

func (a *app) fork(ctx context.Context, p *target, at api.Ref, f forkFlags) (err error) {
	x := f.Fork
	x.Step, x.Models, x.Hold = at.Step, chosenModels(f.models), !f.run
	if x.Limits, err = raisedLimits(f.limits); err != nil {
		return err
	}
	if x.With, err = a.forkDefinition(f.with); err != nil {
		return err
	}
	if f.dir != "" {
		if x.Dir, _, err = places("", f.dir); err != nil {
			return err
		}
	}
	if p.here != nil && a.interactive() {
		p.here.Agree = a.agreeToFork
	}
	made, err := p.Fork(ctx, at.Run, x)
	if err != nil {
		return err
	}
	for _, w := range made.Warnings {
		a.Progress("warning: %s", render.OneLine(w, 300))
	}
	v, err := a.shown(ctx, p, made.ID)
	if err != nil {
		return err
	}
	if f.Files {
		a.Progress("  files  %s", render.Visible(v.Info.Workspace))
	}
	if f.run {
		return a.attend(ctx, p, made.ID, made.Seq)
	}
	if a.AsJSON() {
		return a.Answer(v)
	}
	if _, err := fmt.Fprintln(a.Out, made.ID); err != nil {
		return err
	}
	goOn := []string{"wf", "resume", string(made.ID)}
	if v.Foreign {
		goOn = []string{"wf", "store", "adopt", string(made.ID)}
	}
	a.Progress("  next   %s · %s", protocol.ShellCommand(goOn...), protocol.ShellCommand("wf", "diff", string(at.Run), string(made.ID)))
	return nil
}

// forkDefinition reads the definition of a path, nil for "".
func (a *app) forkDefinition(path string) (*api.Definition, error) {
	if path == "" {
		return nil, nil
	}
	d, _, err := a.readValid(path)
	if err != nil {
		return nil, err
	}
	return a.Whole(d)
}

// agreeToFork asks whether a fork of a run from elsewhere goes on.
func (a *app) agreeToFork(ctx context.Context, run protocol.RunID, workspace string, acts []string) (bool, error) {
	a.Progress("run %s came from elsewhere. Its fork works in %s, and may run", run, render.Visible(workspace))
	a.TellActs("    ", acts)
	err := a.confirm(ctx, "Let the fork run there?", errRefused.With("without --run it is made and shown", "run %s was not forked", run))
	return err == nil, err
}
