package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// layOut lays out what a visit is given in a directory of its own, which remove removes. Its blocks are read one at a time,
// and proved by their hashes.
func (e *Engine) layOut(ctx context.Context, turn *protocol.Turn) (remove func(), err error) {
	remove = func() {}
	if len(turn.Given) == 0 {
		return remove, nil
	}
	for _, g := range turn.Given {
		if !g.Ran {
			return remove, &protocol.Failure{Class: "artifacts", ErrorInfo: protocol.ErrorInfo{Code: "artifacts_missing", Phase: "artifacts",
				Message: fmt.Sprintf("there are no files of %s: it has not run before %s on this branch", g.Role, turn.Role.Name)}}
		}
	}
	if temp, err := filepath.Abs(os.TempDir()); err == nil {
		if _, within := workspace.Through(turn.Workspace, temp); within {
			return remove, protocol.ErrUsage.With("set TMPDIR to a directory outside of the workspace", "the files of %s cannot be laid out for %s: the directory for temporary files, %s, lies in the workspace, where agents write", turn.Given[0].Role, turn.Step, temp)
		}
	}
	dir, err := roles.NewGiven()
	if err != nil {
		return remove, err
	}
	remove = func() {
		if err := dir.Remove(); err != nil {
			e.warn(fmt.Errorf("%s of run %s: the files that it was given stay in %s: %w", turn.Step, turn.Run, dir.Path, err))
		}
	}
	for _, g := range turn.Given {
		if err := e.lay(ctx, filepath.Join(dir.Path, g.Role), g); err != nil {
			return remove, fmt.Errorf("lay out the files of %s for %s: %w", g.Role, turn.Step, err)
		}
	}
	turn.Artifacts = dir.Path
	return remove, dir.Seal()
}

// lay lays out the files of a role.
func (e *Engine) lay(ctx context.Context, to string, g protocol.Given) error {
	read := tree.Read(e.reader(ctx))
	if err := os.Mkdir(to, 0o700); err != nil { // where case does not count, another role may have the name
		return err
	}
	for i, root := range g.Trees {
		dir := to
		if g.Batch {
			dir = filepath.Join(to, strconv.Itoa(i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
		}
		if !root.Defined() {
			continue
		}
		var items []tree.Item
		for it, err := range tree.Walk(read, root) {
			if err != nil {
				return err
			}
			items = append(items, it)
		}
		_, err := workspace.Lay(dir, items, workspace.Laying{ReadOnly: true, Open: func(it tree.Item) (io.ReadCloser, error) {
			r, err := tree.Open(read, it.Entry)
			return io.NopCloser(r), err
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeOfChild takes the files that the steps of a sub-workflow keep as those of the visit that it was performed for: of each
// path the newest. There is nothing new but the directories in which they meet.
func (e *Engine) takeOfChild(ctx context.Context, turn *protocol.Turn, end *outcome) {
	keep := newKeeper(ctx, e)
	root, err := keep.ofChild(turn)
	switch {
	case err == nil:
		end.artifacts = artifacts{root: root, blocks: keep.blocks, release: keep.release, child: true}
		return
	case end.err == nil && !errors.Is(err, protocol.ErrUnknownRun):
		end.err = fmt.Errorf("artifacts of %s: %w", turn.Step, err)
	}
	end.artifacts = artifacts{release: keep.release}
}

func (k *keeper) ofChild(turn *protocol.Turn) (root protocol.Link, err error) {
	read := k.e.reader(k.ctx)
	prog, err := k.e.lib.program(turn.Role.Workflow, read)
	if err != nil || !prog.Keeps() {
		return root, err
	}
	var trees []protocol.Link
	for x, err := range k.e.Store.After(k.ctx, childRun(turn.Run, turn.Key), 0) {
		if err != nil {
			return root, err
		}
		if x.Type != protocol.EvStepCompleted {
			continue
		}
		d, err := cas.DecodeData[protocol.StepCompleted](&x.Event)
		if err != nil {
			return root, err
		}
		at := d.Artifacts
		if !at.Defined() {
			var rec protocol.StepRecord
			if err := decode(read, d.Record, &rec); err != nil {
				return root, err
			}
			at = rec.Artifacts
		}
		trees = append(trees, at)
	}
	return tree.Merge(tree.Read(read), k.put, trees...)
}
