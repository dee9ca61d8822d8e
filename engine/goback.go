package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// Going says where a conversation goes, and the files of its workspace with it.
type Going struct {
	Chat  protocol.ChatMoved // without Seq, and without Next where At says what a fork shares
	To    protocol.Link      // a tree that the run keeps; zero: the files stay as they are
	Force bool               // replace what nothing has recorded, and keep it
	By    string             // recorded
	Each  func(done, of int) // called as files are changed; nil for nothing
}

// GoBack takes a conversation, and the files with it, from a run to another one: to a fork that begins at an earlier event, or to
// a run that was there before. The intent is durable before the first file changes. The fork is made in the transaction that
// records the outcome, so a process that is killed leaves either an intent, which GoOnRestoring ends, or all of it.
//
// A path with another content than either tree has stops it: the answer has State api.RestorePlanned, and nothing was changed. One
// that appears while files change takes back those that have changed: State protocol.RestoreAborted. By Force such paths are
// replaced, and kept in the tree Undo; what cannot be kept is left alone. A directory that holds what was never recorded stays,
// and stops nothing.
//
// It is refused as RestoreFiles is, and where the run that is gone back to is driven or works elsewhere.
func (e *Engine) GoBack(ctx context.Context, run protocol.RunID, o Going) (*api.FilesRestored, error) {
	x, s, end, err := e.restoring(ctx, run, o.Each)
	if err != nil {
		return nil, err
	}
	defer end()
	m := o.Chat
	if m.At == 0 {
		_, unlock, err := e.nextOf(ctx, m, s.Info.Workspace)
		if err != nil {
			return nil, err
		}
		defer unlock()
	} else if _, err := e.planFork(ctx, run, forkOf(m, o.By)); err != nil {
		return nil, err
	} else if m.Next, err = e.unusedID(ctx); err != nil {
		return nil, err
	}
	x.rec = protocol.FilesRestore{Kind: protocol.KindFilesRestore, V: protocol.RecordVersion, Prev: x.head, Run: run, Workspace: s.Info.Workspace,
		State: protocol.RestoreBegun, Force: o.Force, By: o.By, At: e.now(), Chat: &m}
	from, err := x.newest(ctx, run)
	switch {
	case err == nil && o.To.Defined():
		x.rec.From, x.rec.To, x.rec.Undo = from.String(), o.To.String(), from.String()
		err = x.plan(from, o.To)
	case err == nil:
		x.rec.From, x.rec.To, x.rec.Undo = from.String(), from.String(), from.String()
	case !o.To.Defined() && errors.Is(err, protocol.ErrNotFound):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if len(x.changes) > 0 {
		planned, err := x.look(ctx, s)
		if err != nil {
			return nil, err
		}
		if x.stopped(planned.Conflicts) {
			return x.result(api.RestorePlanned, workspace.Restored{Conflicts: planned.Conflicts}), nil
		}
	}
	if err := e.setAside(ctx, run, o.By); err != nil {
		return nil, err
	}
	if _, m.Seq, err = e.Store.Tip(ctx, run); err != nil {
		return nil, err
	}
	if len(x.changes) == 0 {
		return x.moved(ctx)
	}
	if err := x.begin(ctx); err != nil {
		return nil, err
	}
	return x.act(ctx, protocol.RestoreDone)
}

// nextOf holds the lock of the run that a conversation goes back to.
func (e *Engine) nextOf(ctx context.Context, m protocol.ChatMoved, dir string) (s *rules.State, unlock func() error, err error) {
	if s, unlock, err = e.toRestore(ctx, m.Next); err != nil {
		return nil, nil, err
	}
	if s.Info.Workspace != dir {
		return nil, nil, errors.Join(unlock(), protocol.ErrUsage.With("wf chat "+string(m.Next)+" goes on with it there", "run %s works in %s, and not in %s", m.Next, s.Info.Workspace, dir))
	}
	return s, unlock, nil
}

// setAside suspends a run that would go on by itself, since it was cut off or waits for a time: what was taken back acts no more
// unasked.
func (e *Engine) setAside(ctx context.Context, run protocol.RunID, by string) error {
	return e.insist(ctx, run, func(s *rules.State) ([]cas.Draft, []cas.Block, error) {
		if s.Status() == protocol.Queued || Standing(run, s).Due == 0 {
			return nil, nil, nil
		}
		return []cas.Draft{{Data: protocol.SuspendedBy{Reason: protocol.ByInterrupt, Detail: protocol.NewText(by + " went back to before what it was at")}}}, nil, nil
	})
}

// unusedID is the id of a run that is not there yet, and was not deleted either.
func (e *Engine) unusedID(ctx context.Context) (protocol.RunID, error) {
	for {
		id := newRunID(e.Store.IDLength())
		switch _, _, err := e.Store.Tip(ctx, id); {
		case errors.Is(err, protocol.ErrUnknownRun):
			return id, nil
		case err != nil && !errors.Is(err, protocol.ErrRunDeleted):
			return "", err
		}
	}
}

func forkOf(m protocol.ChatMoved, by string) ForkOptions {
	return ForkOptions{At: m.At, Messages: m.Messages, By: by, Note: m.What}
}

// stopped reports whether conflicts stop what a conversation goes with. A directory that stays does not.
func (x *restoring) stopped(conflicts []workspace.Conflict) bool {
	if x.rec.Chat == nil || x.rec.Force || len(conflicts) == 0 {
		return false
	}
	stays := map[string]bool{}
	for _, c := range x.changes { // what takes the place of a directory comes behind it
		stays[c.Path] = c.Before.Mode == tree.Dir && c.After.Mode == ""
	}
	for _, c := range conflicts {
		if !stays[c.Path] {
			return true
		}
	}
	return false
}

// moved has the conversation move where no file changes.
func (x *restoring) moved(ctx context.Context) (*api.FilesRestored, error) {
	x.rec.State, x.rec.Tree = protocol.RestoreDone, x.rec.From
	if err := x.commit(ctx); err != nil {
		return nil, err
	}
	return x.result(protocol.RestoreDone, workspace.Restored{}), nil
}

// takeBack takes back files that have changed, for conflicts that were met meanwhile.
func (x *restoring) takeBack(ctx context.Context, met []workspace.Conflict) (*api.FilesRestored, error) {
	from, to, err := x.trees(true)
	if err == nil {
		x.changes, x.rec.Conflicts = nil, nil
		err = x.plan(from, to)
	}
	if err != nil {
		return nil, &RestoreOpenError{err}
	}
	v, err := x.act(ctx, protocol.RestoreAborted)
	if err != nil {
		return nil, err
	}
	for _, c := range met { // why it was stopped counts more than what was left alone on the way back
		at := -1
		for i := range v.Conflicts {
			if v.Conflicts[i].Path == c.Path {
				at = i
			}
		}
		if at < 0 {
			v.Conflicts = append(v.Conflicts, api.LeftAlone{Path: c.Path, Why: c.Why})
		} else {
			v.Conflicts[at].Why = c.Why
		}
	}
	return v, nil
}

// commitMove commits what ends a restoring together with the move of the conversation. kept is the head of the files of the run
// that is left by then, and last its newest tree: the next run has them too.
func (x *restoring) commitMove(ctx context.Context, b cas.Batch, kept, last protocol.Link) error {
	m := *x.rec.Chat
	if m.At == 0 {
		if err := x.shareNewest(ctx, &b, m.Next, last); err != nil {
			return err
		}
		return x.e.Store.Commit(ctx, b)
	}
	f, err := x.e.planFork(ctx, x.rec.Run, forkOf(m, x.rec.By))
	if err != nil {
		return err
	}
	if kept.Defined() {
		b.Moves = append(b.Moves, cas.Move{Name: protocol.FilesHead(m.Next), New: kept, Note: "fork"})
	}
	j, err := x.e.Store.Journal(ctx, x.rec.Run)
	if err != nil {
		return err
	}
	fork, st, err := j.StageFork(max(x.e.now(), f.at.TS), m.Next, f.at, f.drafts, b.Blocks)
	if err != nil {
		return err
	}
	st.With(b.Moves...)
	st.Stands(f.standing(m.Next))
	if f.own {
		x.e.note(ctx, m.Next, st.First)
	}
	_, err = fork.Commit(ctx, st)
	return err
}

// shareNewest has a run that is gone back to keep the newest tree.
func (x *restoring) shareNewest(ctx context.Context, b *cas.Batch, run protocol.RunID, last protocol.Link) error {
	h, err := x.e.Store.Head(ctx, protocol.FilesHead(run))
	if err != nil || !last.Defined() || !h.Link.Defined() {
		return err
	}
	k, err := x.e.kept(ctx, run, h.Link)
	if err != nil || k.Tree == last {
		return err
	}
	block, err := cas.Encode(protocol.FilesKept{Kind: protocol.KindFilesKept, V: protocol.RecordVersion, Prev: h.Link, Tree: last})
	if err != nil {
		return err
	}
	b.Blocks = append(b.Blocks, block)
	b.Moves = append(b.Moves, cas.Move{Name: protocol.FilesHead(run), Old: h.Link, New: block.Link, Note: x.rec.State})
	return nil
}

// Restorings are the restorings of files in a workspace, the newest first, as far as f wants them, with the links of their records.
func (e *Engine) Restorings(ctx context.Context, dir string, f func(protocol.Link, *protocol.FilesRestore) (more bool)) error {
	x := &restoring{e: e}
	if err := x.open(ctx, dir); err != nil || !x.head.Defined() {
		return err
	}
	for at, rec := x.head, x.rec; f(at, &rec) && rec.Prev.Defined(); {
		at = rec.Prev
		data, err := e.Store.Block(ctx, at)
		rec = protocol.FilesRestore{}
		if err == nil {
			err = cas.Decode(data, &rec)
		}
		if err == nil && rec.Workspace != dir {
			err = fmt.Errorf("one is of %s: %w", rec.Workspace, protocol.ErrCorrupt)
		}
		if err != nil {
			return fmt.Errorf("the restorings of files in %s: %w", dir, err)
		}
	}
	return nil
}

// mayAct refuses to have a run act in a workspace whose files are being restored. A part of another run goes on with that.
func (e *Engine) mayAct(ctx context.Context, dir string) error {
	if !filepath.IsAbs(dir) {
		return nil
	}
	in, err := e.RestoresIn(context.WithoutCancel(ctx), dir)
	if err != nil || in == "" {
		return err
	}
	return protocol.ErrRestoreOpen.With("", "the files of %s are being restored, which has not ended", in)
}
