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

// The files that a run has for itself, as a fork or since it moved here, lie beside the copies of visits, under a name that no key of a visit
// has. They stay when the run has ended, and go with it.

// forkDir is where a run has files for itself from an event on; see roles.ForkKey.
func (e *Engine) forkDir(id protocol.RunID, from protocol.Seq) (string, error) {
	if e.Copies == "" {
		return "", protocol.ErrUsage.With("set HOME or XDG_STATE_HOME", "there is no directory for copies of the workspace")
	}
	return roles.ForkedFiles(e.Copies, id, roles.ForkKey(from)), nil
}

// layFork writes the files of a tree that run recorded for the run id, which has them from an event on, and gives those that it leaves
// out; drop removes them again.
func (e *Engine) layFork(ctx context.Context, run, id protocol.RunID, from protocol.Seq, root protocol.Link) (left []string, drop func() error, err error) {
	key := roles.ForkKey(from)
	o, _, err := roles.OpenOwnCopy(e.Copies, id, key)
	if err != nil {
		return nil, nil, err
	}
	drop = func() error { return roles.DropOwnCopy(e.Copies, id, key) }
	if err = o.Empty(); err == nil { // a process that was killed may have left it whole, and others have written there since
		left, err = e.LayTree(ctx, run, root, o.Files())
	}
	if err == nil {
		err = o.Ready(root.String())
	}
	if err = errors.Join(err, o.Close()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("write the files of the run: %w", err), drop())
	}
	return left, drop, nil
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

// enterFork keeps files that a run has for itself from being removed while a run works in them. Any other workspace is left
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
		return nil, protocol.ErrNotFound.With("wf fork RUN:STEP --files makes another fork with files of its own", "the files of the run are gone: %s", dir)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = free() }, nil // nothing was written to the lock
}

// dropForked removes the files that a run has for itself which is deleted.
func (e *Engine) dropForked(run protocol.RunID) {
	if e.Copies == "" {
		return
	}
	if err := roles.DropForkedFiles(e.Copies, run); err != nil {
		e.warn(fmt.Errorf("run %s is deleted, and its files in %s are left: %w", run, filepath.Join(e.Copies, string(run)), err))
	}
}
