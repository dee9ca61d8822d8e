package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/service/compose"
)

// restoring is what wf restore is asked for.
type restoring struct {
	to, tree              string
	before, force, dryRun bool
	goOn, abort           bool
}

func newRestore(a *app) *cobra.Command {
	var r restoring
	cmd := &cobra.Command{
		Use:   "restore [RUN[:STEP]] [PATH...]",
		Short: "Bring files of the workspace back to what a step left",
		Long: `Bring the files of the workspace back to what a step left; with --before, to what it found. Only files are changed that
differ between that and what the run recorded last, with PATH those alone; what lies at a PATH, and below, is compared in any
case. A file with another content than either, which nothing has recorded, is a conflict: it is left alone, and the exit
status is 1. --force replaces it too, and keeps what it replaces. What was never recorded, such as ignored files and those
with secrets, is not touched.

The command ends by printing the one that takes it back. Where it is interrupted or killed, each file is as before or as
after: --continue goes on, --abort goes back. It is refused while the run is driven.

--to writes the files below another directory, and leaves the workspace alone. Paths begin at the workspace, as wf files
lists them.`,
		Example: `  wf restore -1:coder#2
  wf restore -1:coder#2 --before --dry-run
  wf restore 7K3Q:coder#1 src/main.go docs
  wf restore 7K3Q:coder#1 --to ../as-it-was
  wf restore --continue`,
		Args: func(cmd *cobra.Command, args []string) error {
			others := 0
			for _, on := range []bool{r.to != "", r.tree != "", r.before, r.force, r.dryRun} {
				if on {
					others++
				}
			}
			switch {
			case r.goOn && r.abort:
				return usagef("--continue and --abort cannot be combined")
			case (r.goOn || r.abort) && (len(args) > 1 || others > 0):
				return usagef("--continue and --abort take a run, and nothing else: what is restored was said at the beginning")
			case r.goOn || r.abort:
				return nil
			case r.tree != "" && r.before:
				return usagef("--tree and --before cannot be combined")
			case r.to != "" && r.dryRun:
				return usagef("--to and --dry-run cannot be combined")
			}
			return takes(1, -1, "a step")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error {
				if r.goOn || r.abort {
					return a.goOnRestoring(ctx, p, args, r.abort)
				}
				return a.restoreFiles(ctx, p, args, r)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.to, "to", "", "write the files below this directory instead")
	f.StringVar(&r.tree, "tree", "", "restore this tree, which the run keeps, in place of one of a step")
	f.BoolVar(&r.before, "before", false, "to what the step found")
	f.BoolVar(&r.force, "force", false, "replace files that nothing has recorded too, and keep them; with --to, files that are there")
	f.BoolVar(&r.dryRun, "dry-run", false, "tell what would change, and change nothing")
	f.BoolVar(&r.goOn, "continue", false, "go on with a restoring that was interrupted")
	f.BoolVar(&r.abort, "abort", false, "go back to before a restoring that was interrupted")
	return cmd
}

func (a *app) restoreFiles(ctx context.Context, p *target, args []string, r restoring) error {
	at, root, err := a.treeOf(ctx, p, args[0], r)
	if err != nil {
		return err
	}
	paths := make([]string, 0, len(args))
	for _, arg := range args[1:] {
		paths = append(paths, path.Clean(filepath.ToSlash(arg)))
	}
	if slices.Contains(paths, ".") {
		paths = nil
	}
	if r.to != "" {
		return a.restoreTo(ctx, p, at, root, paths, r)
	}
	v, err := p.here.Engine.RestoreFiles(ctx, at.Run, engine.Restoration{To: root, Paths: paths, Force: r.force, DryRun: r.dryRun, By: compose.User(), Each: a.restored()})
	return a.toldRestored(v, err, r.dryRun)
}

// treeOf is the tree that is meant.
func (a *app) treeOf(ctx context.Context, p *target, arg string, r restoring) (at api.Ref, root protocol.Link, err error) {
	if at, err = p.runOrStep(ctx, arg); err != nil {
		return at, root, err
	}
	if r.tree == "" {
		if at.Step == "" && !r.before {
			return at, root, at.MustBeStep(written(arg))
		}
		_, span, err := p.span(ctx, at)
		if err != nil {
			return at, root, err
		}
		return at, span.At(r.before).Root, nil
	}
	of, err := p.find(ctx, r.tree)
	if err == nil && !of.Block.Defined() {
		err = usagef("--tree %s: want the CID of a tree, as wf files -o json has it", r.tree)
	}
	if err != nil {
		return at, root, err
	}
	keeps, err := p.here.Engine.FilesTree(ctx, at.Run, of.Block)
	if err == nil && !keeps {
		err = protocol.ErrNotFound.With("wf files "+string(at.Run)+" -o json has one", "run %s keeps no tree %s", at.Run, of.Block)
	}
	return at, of.Block, err
}

// restoreTo writes the files elsewhere.
func (a *app) restoreTo(ctx context.Context, p *target, at api.Ref, root protocol.Link, paths []string, r restoring) error {
	var items []tree.Item
	met := make([]bool, len(paths))
	for it, err := range tree.Walk(p.read(ctx), root) {
		if err != nil {
			return api.NotKept(at.Run, root, err)
		}
		meant := len(paths) == 0
		for i, dir := range paths {
			if within(it.Path, dir) {
				meant, met[i] = true, true
			}
		}
		if meant {
			items = append(items, it)
		}
	}
	if i := slices.Index(met, false); i >= 0 {
		return unknownFile(at, paths[i], protocol.ErrUnknownArtifact)
	}
	return api.NotKept(at.Run, root, a.lay(p.read(ctx), at.Run, items, r.to, r.force))
}

// goOnRestoring ends what was begun in this directory, or in the workspace of a run.
func (a *app) goOnRestoring(ctx context.Context, p *target, args []string, back bool) error {
	var dir string
	if len(args) == 1 {
		run, err := p.run(ctx, args[0])
		if err != nil {
			return err
		}
		v, err := p.Run(ctx, run, api.Window{Limit: 1})
		if err != nil {
			return err
		}
		dir = v.Info.Workspace
	} else {
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		if dir, err = p.here.Engine.RestoresIn(ctx, here); err != nil {
			return err
		}
		if dir == "" {
			dir = here // where there is none
		}
	}
	v, err := p.here.Engine.GoOnRestoring(ctx, dir, back, a.restored())
	return a.toldRestored(v, err, false)
}

// restored shows how far a long restoring is.
func (a *app) restored() func(done, of int) {
	told := time.Now()
	return func(done, of int) {
		if now := time.Now(); now.Sub(told) > time.Second {
			told = now
			a.Progress("%d of %d", done, of)
		}
	}
}

// toldRestored tells what became of the files.
func (a *app) toldRestored(v *api.FilesRestored, err error, dryRun bool) error {
	if _, open := errors.AsType[*engine.RestoreOpenError](err); open {
		a.Progress("each file is as before or as after; wf restore --continue goes on, wf restore --abort goes back")
	}
	if err = answer(a, v, err, func(v *api.FilesRestored) error { return a.ShowRestored(v, dryRun) }); err != nil {
		return err
	}
	if len(v.Conflicts) > 0 {
		return silent{errConflicts}
	}
	return nil
}
