package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// Burial says by which user a run is deleted, and why.
type Burial struct {
	By, Why string
	DryRun  bool // nothing is changed
}

// Delete puts tombstones in the place of a run that has ended, and of the runs of its sub-workflows, in one
// transaction under the locks of all of them. It returns these runs, the named one first, and the time.
func (e *Engine) Delete(ctx context.Context, run protocol.RunID, b Burial) (runs []protocol.RunID, at int64, err error) {
	for {
		at = e.now()
		runs, err = e.delete(ctx, run, b, at)
		if !errors.Is(err, protocol.ErrHeadMoved) {
			return runs, at, err
		}
	}
}

func (e *Engine) delete(ctx context.Context, run protocol.RunID, b Burial, at int64) (runs []protocol.RunID, err error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	if err := e.deletable(ctx, run, s); err != nil {
		return nil, err
	}
	runs, err = e.ownRuns(ctx, run, s)
	if err != nil {
		return nil, err
	}
	if b.DryRun {
		for _, r := range runs {
			if err := e.Store.Undriven(ctx, r); err != nil {
				return nil, err
			}
		}
		return runs, nil
	}
	for _, r := range runs {
		claim, err := e.Store.Claim(ctx, r)
		if err != nil {
			return nil, err
		}
		defer e.letGo(ctx, r, claim)
	}
	hide := hider(s.Program())
	var batch cas.Batch
	for i, r := range runs {
		h, err := e.Store.Head(ctx, protocol.RunHead(r))
		if err != nil {
			return nil, err
		}
		if !h.Link.Defined() || i == 0 && h.Seq != s.Seq {
			return nil, fmt.Errorf("run %s: %w", r, protocol.ErrHeadMoved) // it went on before it was locked
		}
		files, err := e.Store.Head(ctx, protocol.FilesHead(r))
		if err != nil {
			return nil, err
		}
		stone := protocol.Tombstone{By: b.By, At: at, Why: hide.String(b.Why)}
		if files.Link.Defined() {
			stone.Files = files.Link.String()
		}
		d, err := cas.Bury(h, stone)
		if err != nil {
			return nil, err
		}
		batch.Deletes = append(batch.Deletes, d)
	}
	if err := e.dropSeen(runs...); err != nil {
		return nil, err
	}
	if err := e.Store.Commit(ctx, batch); err != nil {
		return nil, fmt.Errorf("delete run %s: %w", run, err)
	}
	for _, r := range runs {
		e.over(r)
		e.dropCopies(r)
		e.dropForked(r)
		if err := e.Store.DropLock(ctx, r); err != nil {
			e.warn(fmt.Errorf("run %s is deleted, and the file of its lock is left: %w", r, err))
		}
	}
	return runs, nil
}

// deletable is nil for a run that has ended and is no part of another one that is there.
func (e *Engine) deletable(ctx context.Context, run protocol.RunID, s *rules.State) error {
	if !s.Status().Final() {
		return protocol.ErrNotFinal.With("wf cancel "+string(run)+" ends it", "run %s is %s; what has not ended is not deleted", run, s.Status())
	}
	p := s.Info.Parent
	if p == nil || s.Info.Forked.Defined() {
		return nil
	}
	_, _, err := e.Store.Tip(ctx, p.Run)
	switch {
	case err == nil:
		return protocol.ErrUsage.With("delete "+string(p.Run), "run %s is the sub-workflow %s of run %s, and goes with it", run, p.Step, p.Run)
	case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted):
		return nil
	}
	return err
}

// ownRuns are a run and the runs of its sub-workflows that it began itself: not those that a fork shares with the
// run it was forked from.
func (e *Engine) ownRuns(ctx context.Context, run protocol.RunID, s *rules.State) ([]protocol.RunID, error) {
	runs := []protocol.RunID{run}
	if !slices.ContainsFunc(s.Program().Workflow.Roles, func(r protocol.Role) bool { return r.Action == protocol.ActWorkflow }) {
		return runs, nil
	}
	all, err := e.Descendants(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, child := range all { // each behind the one that began it
		c, err := e.State(ctx, child)
		if err != nil {
			return nil, err
		}
		if p := c.Info.Parent; p != nil && slices.Contains(runs, p.Run) {
			runs = append(runs, child)
		}
	}
	return runs, nil
}

// Holders are the forks that share events with runs, and are none of them, with the bytes of what they hold of them.
func (e *Engine) Holders(ctx context.Context, runs []protocol.RunID) ([]api.Holder, error) {
	out := []api.Holder{}
	for _, run := range runs {
		forks, err := e.Store.Forks(ctx, run)
		if err != nil {
			return nil, err
		}
		for _, f := range forks {
			if slices.Contains(runs, f.Run) {
				continue
			}
			bytes, err := e.Store.Reach(ctx, f.Run, f.Seq)
			if err != nil {
				return nil, err
			}
			out = append(out, api.Holder{What: "fork", Name: string(f.Run), Bytes: bytes})
		}
	}
	return out, nil
}

// DropFiles drops the files of a workspace that a run recorded, under its lock: its journal and conclusions stay. The next
// collections remove what nothing else has. It reports whether there were any.
func (e *Engine) DropFiles(ctx context.Context, run protocol.RunID) (there bool, err error) {
	claim, err := e.Store.Claim(ctx, run)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, claim.Release(ctx)) }()
	h, err := e.Store.Head(ctx, protocol.FilesHead(run))
	if err == nil {
		err = e.dropSeen(run)
	}
	if err != nil || !h.Link.Defined() {
		return false, err
	}
	return true, e.Store.Commit(ctx, cas.Batch{Drops: []string{h.Name}, Fence: claim.Fence()})
}
