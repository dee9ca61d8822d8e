package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// The files that a fork has for itself lie beside the copies of visits, under a name that no key of a visit has. They stay when the
// run has ended, and go with it.

// forkDir is where the fork of that id has its files.
func (e *Engine) forkDir(id protocol.RunID) (string, error) {
	if e.Copies == "" {
		return "", protocol.ErrUsage.With("set HOME or XDG_STATE_HOME, or name a directory with --dir", "--files: there is no directory for copies of the workspace")
	}
	return roles.ForkedFiles(e.Copies, id), nil
}

// layFork writes the files of a tree for a fork; drop removes them again.
func (e *Engine) layFork(ctx context.Context, run, id protocol.RunID, root protocol.Link, leftOut func(string)) (drop func() error, err error) {
	o, _, err := roles.OpenOwnCopy(e.Copies, id, roles.ForkName)
	if err != nil {
		return nil, err
	}
	drop = func() error { return roles.DropOwnCopy(e.Copies, id, roles.ForkName) }
	left, err := e.LayTree(ctx, run, root, o.Files())
	if err == nil {
		err = o.Ready(root.String())
	}
	if err = errors.Join(err, o.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("write the files of the fork: %w", err), drop())
	}
	for _, what := range left {
		if leftOut != nil {
			leftOut(what)
		}
	}
	return drop, nil
}

// LayTree writes the files of a tree, as a run recorded it, into a directory, and gives those that it leaves out, each with why.
// Blocks that are gone are an error wrapping protocol.ErrNotFound.
func (e *Engine) LayTree(ctx context.Context, run protocol.RunID, root protocol.Link, dir string) (leftOut []string, err error) {
	defer func() { err = api.NotKept(run, root, err) }()
	read := e.Store.Reader(ctx)
	var items []tree.Item
	for it, err := range tree.Walk(read, root) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	laid, err := workspace.Lay(dir, items, workspace.Laying{Open: func(it tree.Item) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := tree.Open(read, it.Entry)
		return io.NopCloser(r), err
	}})
	return laid.Skipped, err
}

// enterFork keeps the files of a fork from being removed while a run works in them. A workspace that is none of a fork is left
// alone.
func (e *Engine) enterFork(dir string) (leave func(), err error) {
	if e.Copies == "" || !roles.IsForkedFiles(e.Copies, dir) {
		return func() {}, nil
	}
	free, err := roles.ShareOwnCopy(filepath.Dir(dir))
	if err == nil {
		if _, gone := os.Lstat(dir); gone != nil {
			err = errors.Join(gone, free())
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, protocol.ErrNotFound.With("wf fork RUN:STEP --files makes another fork with files of its own", "the files of the fork are gone: %s", dir)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = free() }, nil // nothing was written to the lock
}

// dropForked removes the files of a fork that is deleted.
func (e *Engine) dropForked(run protocol.RunID) {
	if e.Copies == "" {
		return
	}
	if err := roles.DropOwnCopy(e.Copies, run, roles.ForkName); err != nil {
		e.warn(fmt.Errorf("run %s is deleted, and its files in %s are left: %w", run, roles.ForkedFiles(e.Copies, run), err))
	}
}
