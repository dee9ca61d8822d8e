package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// artifacts are what was taken of the files of a visit. Few blocks are committed with the record that leads to
// them; where there are more, they are stored before it in batches, and no collection runs until it is on disk.
type artifacts struct {
	root    protocol.Link
	blocks  []cas.Block // that are not stored yet
	release func()      // of what keeps collections away; nil where nothing is stored yet
	child   bool        // they are of a sub-workflow, and no part of the record
}

// letGo gives up what was stored.
func (end *outcome) letGo() {
	for _, a := range []artifacts{end.artifacts, end.own.artifacts} {
		if a.release != nil {
			a.release()
		}
	}
}

// landed is to be called when the record is on disk, or does not come there; nil for nothing.
func (end *outcome) landed() func(error) {
	if end.artifacts.release == nil && end.own.release == nil && end.own.recorded == nil {
		return nil
	}
	return func(err error) {
		end.letGo()
		if err == nil && end.own.recorded != nil {
			end.own.recorded()
		}
	}
}

// What is committed at once: a long commit has others wait.
const (
	artifactBatch  = 4 << 20 // bytes
	artifactBlocks = 4096
)

// takeArtifacts takes the files that a role says are kept, of a visit that has ended: its process group has, and the
// visit went well or failed for good, since a report of what failed is wanted most then. One that goes well but has too
// much fails; of one that fails nothing is kept then.
func (e *Engine) takeArtifacts(ctx context.Context, turn *protocol.Turn, end *outcome) {
	spec := turn.Role.Artifacts
	failed, over := e.failedForGood(turn, end)
	if end.err != nil && !over || ctx.Err() != nil {
		return
	}
	if turn.Role.Action == protocol.ActWorkflow {
		e.takeOfChild(ctx, turn, end)
		return
	}
	if !turn.Role.Keeps() {
		return
	}
	keep := newKeeper(ctx, e)
	root, err := keep.take(turn, spec)
	if err == nil {
		end.artifacts = artifacts{root: root, blocks: keep.blocks, release: keep.release}
		return
	}
	end.artifacts = artifacts{release: keep.release}
	limit, tooMuch := errors.AsType[*workspace.LimitError](err)
	switch {
	case tooMuch && failed != nil:
		if failed.Detail != "" {
			failed.Detail += "; "
		}
		failed.Detail += "its artifacts were not kept: " + limit.Error()
	case tooMuch:
		end.err = &protocol.Failure{Err: err, Class: "artifacts", ErrorInfo: protocol.ErrorInfo{Code: "artifacts_limit", Phase: "artifacts",
			Message: fmt.Sprintf("%s; raise artifacts.%s of the role, or leave files out by a glob that begins with !", limit, limit.Key)}}
	case end.err == nil:
		end.err = fmt.Errorf("artifacts of %s: %w", turn.Step, err)
	}
}

// failedForGood reports whether an attempt failed and is not tried again; failed is nil where its timeout ended it.
func (e *Engine) failedForGood(turn *protocol.Turn, end *outcome) (failed *protocol.Failure, over bool) {
	class := "timeout"
	if !end.timedOut {
		if !errors.As(end.err, &failed) || failed.Suspend || errors.Is(end.err, protocol.ErrWaiting) {
			return nil, false
		}
		class = failed.Class
	}
	_, again := rules.RetryAt(turn.Role.Retry, class, turn.Attempt, e.now(), 0)
	return failed, !again
}

// keeper stores the blocks of trees.
type keeper struct {
	e       *Engine
	ctx     context.Context
	blocks  []cas.Block
	seen    map[protocol.Link][]byte // those of blocks
	size    int
	release func()
}

func newKeeper(ctx context.Context, e *Engine) *keeper {
	return &keeper{e: e, ctx: ctx, seen: map[protocol.Link][]byte{}}
}

// read fetches a block that was put, or that the store has.
func (k *keeper) read(l protocol.Link) ([]byte, error) {
	if b, ok := k.seen[l]; ok {
		return b, nil
	}
	return k.e.Store.Block(k.ctx, l)
}

func (k *keeper) take(turn *protocol.Turn, spec *protocol.Artifacts) (protocol.Link, error) {
	globs, err := tree.NewGlobs(spec.Paths)
	if err != nil {
		return protocol.Link{}, err
	}
	secrets := roles.Secrets(os.Environ(), turn.Secrets)
	root, _, err := workspace.Take(k.ctx, turn.Workspace, workspace.Taking{
		Choose:  globs.Top(),
		MaxSize: cmp.Or(spec.MaxSize, protocol.ArtifactSize), MaxTotal: cmp.Or(spec.MaxTotal, protocol.ArtifactTotal), MaxFiles: cmp.Or(spec.MaxFiles, protocol.ArtifactFiles),
		Put:  k.put,
		Scan: func() workspace.Scanner { return roles.NewFinder(secrets) },
	})
	return root, err
}

// hold keeps collections away from now on.
func (k *keeper) hold() (err error) {
	if k.release == nil {
		k.release, err = k.e.Store.Hold(k.ctx)
	}
	return err
}

// letGo lets collections run again.
func (k *keeper) letGo() {
	if k.release != nil {
		k.release()
	}
}

func (k *keeper) put(b tree.Block) error {
	if _, ok := k.seen[b.Link]; ok {
		return nil
	}
	if k.size+len(b.Data) > artifactBatch || len(k.blocks) == artifactBlocks {
		if err := k.flush(); err != nil {
			return err
		}
	}
	k.seen[b.Link] = b.Data
	k.blocks, k.size = append(k.blocks, cas.Block(b)), k.size+len(b.Data)
	return nil
}

// flush stores what there is. Nothing leads to it yet, so no collection may run from now on.
func (k *keeper) flush() (err error) {
	if err := k.hold(); err != nil {
		return err
	}
	if err := k.e.Store.Commit(k.ctx, cas.Batch{Blocks: k.blocks, Fence: fenceOf(k.ctx)}); err != nil {
		return err
	}
	k.blocks, k.size = nil, 0
	clear(k.seen)
	return nil
}
