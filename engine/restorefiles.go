package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// Restoration says how the files of a workspace are restored.
type Restoration struct {
	To     protocol.Link // a tree that the run keeps
	Paths  []string      // those alone, and what is below; none is all
	Force  bool          // replace what nothing has recorded, and keep it
	DryRun bool
	By     string
	Each   func(done, of int) // called as files are changed; nil for nothing
}

// RestoreFiles changes the files of the workspace of a run from the newest tree that the run keeps to another one. The
// intent is durable before the first of them changes, and the outcome behind the last: a process that is killed, or whose
// ctx ends, leaves the old or the new state of each file, and GoOnRestoring goes on, or back. Paths with another content than
// either tree has are left alone, or, by Force, kept in the tree Undo and replaced. What lies at Paths, and below, is looked at
// also where both trees have the same.
//
// It is refused while the run is driven (protocol.ErrRunLive), where another restoring is open in the workspace
// (protocol.ErrRestoreOpen), and for a run that came from elsewhere (protocol.ErrForeign).
func (e *Engine) RestoreFiles(ctx context.Context, run protocol.RunID, o Restoration) (*api.FilesRestored, error) {
	x, s, end, err := e.restoring(ctx, run, o.Each)
	if err != nil {
		return nil, err
	}
	defer end()
	from, err := x.newest(ctx, run)
	if err != nil {
		return nil, err
	}
	x.rec = protocol.FilesRestore{Kind: protocol.KindFilesRestore, V: protocol.RecordVersion, Prev: x.head, Run: run, Workspace: s.Info.Workspace,
		State: protocol.RestoreBegun, From: from.String(), To: o.To.String(), Undo: from.String(), Paths: o.Paths, Force: o.Force, By: o.By, At: e.now()}
	if err := x.plan(from, o.To); err != nil {
		return nil, err
	}
	differ := slices.ContainsFunc(x.changes, func(c tree.Change) bool { return c.Before != c.After })
	if o.Force || o.DryRun || !differ {
		planned, err := x.look(ctx, s)
		if err != nil || o.DryRun || len(planned.Changed) == 0 {
			return x.result(api.RestorePlanned, planned), err
		}
	}
	if err := x.begin(ctx); err != nil {
		return nil, err
	}
	return x.act(ctx, protocol.RestoreDone)
}

// GoOnRestoring ends a restoring of files that a process began and did not end: it goes on, or, with back, back to what was
// there before. A workspace without one is an error wrapping protocol.ErrNotFound.
func (e *Engine) GoOnRestoring(ctx context.Context, dir string, back bool, each func(done, of int)) (*api.FilesRestored, error) {
	x := newRestoring(ctx, e, each)
	defer x.keep.letGo()
	if err := x.open(ctx, dir); err != nil {
		return nil, err
	}
	if x.rec.State != protocol.RestoreBegun {
		return nil, protocol.ErrNotFound.With("wf restore RUN:step begins one", "no files are being restored in %s", dir)
	}
	head := x.head
	_, unlock, err := e.toRestore(ctx, x.rec.Run)
	if back && (errors.Is(err, protocol.ErrRunDeleted) || errors.Is(err, protocol.ErrUnknownRun)) {
		return x.giveUp(ctx) // its trees went with the run
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := x.open(ctx, dir); err != nil {
		return nil, err
	}
	if x.head != head {
		return nil, fmt.Errorf("the files of %s: %w", dir, protocol.ErrHeadMoved)
	}
	if m := x.rec.Chat; m != nil && m.At == 0 && !back {
		_, unlock, err := e.nextOf(ctx, *m, dir)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	from, to, err := x.trees(back)
	if err == nil {
		_, err = x.newest(ctx, x.rec.Run)
	}
	if err == nil {
		err = x.plan(from, to)
	}
	if back && errors.Is(err, protocol.ErrNotFound) {
		return x.giveUp(ctx) // its trees were dropped
	}
	if err != nil {
		return nil, err
	}
	if back {
		return x.act(ctx, protocol.RestoreAborted)
	}
	return x.act(ctx, protocol.RestoreDone)
}

// RestoresIn finds the restoring that is open in a directory, or in one above it; "" is none.
func (e *Engine) RestoresIn(ctx context.Context, dir string) (string, error) {
	for {
		x := &restoring{e: e}
		if err := x.open(ctx, dir); err != nil || x.rec.State == protocol.RestoreBegun {
			return dir, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil
		}
		dir = up
	}
}

// FilesTree reports whether a run keeps a tree.
func (e *Engine) FilesTree(ctx context.Context, run protocol.RunID, root protocol.Link) (bool, error) {
	h, err := e.Store.Head(ctx, protocol.FilesHead(run))
	seen := map[protocol.Link]bool{}
	for ahead := []protocol.Link{h.Link}; err == nil && len(ahead) > 0; {
		l := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if !l.Defined() || seen[l] {
			continue
		}
		seen[l] = true
		var kept protocol.FilesKept
		if kept, err = e.kept(ctx, run, l); err == nil && kept.Tree == root {
			return true, nil
		}
		ahead = append(ahead, kept.Also, kept.Prev)
	}
	return false, err
}

func (e *Engine) kept(ctx context.Context, run protocol.RunID, l protocol.Link) (k protocol.FilesKept, err error) {
	data, err := e.Store.Block(ctx, l)
	if err == nil {
		err = cas.Decode(data, &k)
	}
	if err != nil {
		err = fmt.Errorf("the files of run %s: %w", run, err)
	}
	return k, err
}

// toRestore holds the lock of a run of the user's own that no process drives.
func (e *Engine) toRestore(ctx context.Context, run protocol.RunID) (s *rules.State, unlock func() error, err error) {
	if s, err = e.State(ctx, run); err != nil {
		return nil, nil, err
	}
	if err := e.Own(ctx, run); err != nil {
		return nil, nil, err
	}
	if e.elsewhere(s) {
		return nil, nil, errElsewhere(run, s)
	}
	driven, err := e.driven(ctx, run, s, 0)
	if err == nil && driven {
		err = protocol.ErrRunLive.With("wf watch "+string(run)+" follows it; restore when it has ended or is suspended", "run %s is driven just now", run)
	}
	if err != nil {
		return nil, nil, err
	}
	claim, err := e.Store.Claim(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	return s, func() error { return claim.Release(context.WithoutCancel(ctx)) }, nil
}

// restoring is a restoring of files that is under way.
type restoring struct {
	e    *Engine
	each func(done, of int)
	keep *keeper
	read tree.Read // the blocks of trees

	head protocol.Link // of the workspace
	rec  protocol.FilesRestore
	kept protocol.Link // the head of the files of the run
	last protocol.Link // the tree that it has

	changes []tree.Change
	from    protocol.Link
	to      protocol.Link
	undo    map[string]tree.Entry // in what Undo differs from From
	refused map[string]string     // why paths cannot be kept
}

func newRestoring(ctx context.Context, e *Engine, each func(done, of int)) *restoring {
	return &restoring{e: e, each: each, keep: newKeeper(ctx, e), read: e.Store.Reader(ctx)}
}

// restoring holds the lock of a run, in whose workspace nothing else is being restored, until end is called.
func (e *Engine) restoring(ctx context.Context, run protocol.RunID, each func(done, of int)) (x *restoring, s *rules.State, end func(), err error) {
	s, unlock, err := e.toRestore(ctx, run)
	if err != nil {
		return nil, nil, nil, err
	}
	x = newRestoring(ctx, e, each)
	end = func() {
		x.keep.letGo()
		unlock()
	}
	if err = x.open(ctx, s.Info.Workspace); err == nil && x.rec.State == protocol.RestoreBegun {
		err = protocol.ErrRestoreOpen.With("", "the files of %s are being restored to %s, which has not ended", x.rec.Workspace, restoringTo(x.rec))
	}
	if err != nil {
		end()
		return nil, nil, nil, err
	}
	return x, s, end, nil
}

func restoringTo(r protocol.FilesRestore) string {
	l, err := protocol.ParseLink(r.To)
	if err != nil {
		return r.To
	}
	return fmt.Sprintf("the tree %s of run %s", l.Short(), r.Run)
}

// open reads how the restoring of files in a workspace of this machine stands.
func (x *restoring) open(ctx context.Context, dir string) error {
	return x.openOn(ctx, x.e.Machine, dir)
}

func (x *restoring) openOn(ctx context.Context, machine, dir string) error {
	h, err := x.e.Store.Head(ctx, protocol.RestoreHead(machine, dir))
	if err != nil || !h.Link.Defined() {
		return err
	}
	data, err := x.e.Store.Block(ctx, h.Link)
	if err == nil {
		err = cas.Decode(data, &x.rec)
	}
	if err == nil && x.rec.Workspace != dir {
		err = fmt.Errorf("it is of %s: %w", x.rec.Workspace, protocol.ErrCorrupt)
	}
	if err != nil {
		return fmt.Errorf("the restoring of files in %s: %w", dir, err)
	}
	x.head = h.Link
	return nil
}

// newest is the tree that a run recorded last.
func (x *restoring) newest(ctx context.Context, run protocol.RunID) (protocol.Link, error) {
	h, err := x.e.Store.Head(ctx, protocol.FilesHead(run))
	if err == nil && !h.Link.Defined() {
		err = protocol.ErrNotFound.With("workspace: {track: true} in the workflow has later runs record them", "run %s keeps no files", run)
	}
	if err != nil {
		return protocol.Link{}, err
	}
	k, err := x.e.kept(ctx, run, h.Link)
	x.kept, x.last = h.Link, k.Tree
	return k.Tree, err
}

// trees are those between which the files change, and with what they differ from what was recorded.
func (x *restoring) trees(back bool) (from, to protocol.Link, err error) {
	var all [3]protocol.Link
	for i, text := range []string{x.rec.From, x.rec.To, x.rec.Undo} {
		if all[i], err = protocol.ParseLink(text); err != nil {
			return from, to, err
		}
	}
	x.undo = map[string]tree.Entry{}
	for c, err := range tree.Diff(x.read, all[0], all[2]) {
		if err != nil {
			return from, to, api.NotKept(x.rec.Run, all[2], err)
		}
		x.undo[c.Path] = c.After
	}
	if back {
		return all[1], all[2], nil
	}
	return all[0], all[1], nil
}

// look tells what would change. What Force replaces is stored, and Undo then has it.
func (x *restoring) look(ctx context.Context, s *rules.State) (workspace.Restored, error) {
	r := workspace.Restoring{Dry: true}
	x.undo = map[string]tree.Entry{}
	if x.rec.Force {
		if err := x.keep.hold(); err != nil {
			return workspace.Restored{}, err
		}
		r.Keep, r.KeepMax = x.store(s), mostKept(s)
	}
	out, err := workspace.Restore(ctx, x.rec.Workspace, x.changes, r)
	if err != nil || !x.rec.Force || len(out.Changed) == 0 {
		return out, err
	}
	x.refused = map[string]string{}
	for _, c := range out.Conflicts {
		x.refused[c.Path] = c.Why
	}
	for _, path := range out.Absent {
		x.undo[path] = tree.Entry{}
	}
	if len(x.undo) == 0 {
		return out, nil
	}
	undo, err := tree.Edit(x.read, x.from, x.undo, x.keep.put)
	x.rec.Undo = undo.String()
	return out, err
}

// mostKept is the length of the longest file that is recorded.
func mostKept(s *rules.State) int64 {
	if w := s.Program().Workflow.Workspace; w != nil {
		return cmp.Or(w.MaxSize, protocol.TrackSize)
	}
	return protocol.TrackSize
}

// store stores what lies at a path and nothing has recorded, but not where it holds a secret: then it is left alone.
func (x *restoring) store(s *rules.State) func(string, tree.Entry, io.Reader) error {
	prog := s.Program()
	secrets := roles.Secrets(os.Environ(), declaredSecrets(prog))
	most := mostKept(s)
	return func(path string, is tree.Entry, content io.Reader) error {
		if is.Size > most {
			return &workspace.LeaveError{Why: fmt.Sprintf("it was changed since it was recorded, and has more than the %d bytes that are kept", most)}
		}
		find := roles.NewFinder(secrets)
		var blocks []tree.Block
		l, err := tree.Content(io.TeeReader(content, find), is.Size, func(b tree.Block) error { blocks = append(blocks, b); return nil })
		secret := find.Close()
		switch {
		case errors.Is(err, tree.ErrChanged) || err == nil && l != is.Link:
			return &workspace.LeaveError{Why: "it changes just now"}
		case err != nil:
			return err
		case secret != "":
			return &workspace.LeaveError{Why: "it was changed since it was recorded, and holds a secret, which is not kept"}
		}
		for _, b := range blocks {
			if err := x.keep.put(b); err != nil {
				return err
			}
		}
		x.undo[path] = is
		return nil
	}
}

// begin has the intent durable, with what it leads to.
func (x *restoring) begin(ctx context.Context) error {
	undo, err := protocol.ParseLink(x.rec.Undo)
	if err != nil {
		return err
	}
	return x.commit(ctx, undo)
}

// commit moves the head of the workspace to the record as it is now, and has the run keep trees.
func (x *restoring) commit(ctx context.Context, trees ...protocol.Link) error {
	x.rec.Prev = x.head
	rec, err := cas.Encode(x.rec)
	if err != nil {
		return err
	}
	batch := cas.Batch{Blocks: append(slices.Clone(x.keep.blocks), rec), Moves: []cas.Move{{Name: protocol.RestoreHead(x.e.Machine, x.rec.Workspace), Old: x.head, New: rec.Link, Note: x.rec.State}}}
	kept, last := x.kept, x.last
	for _, l := range trees {
		if l == last {
			continue
		}
		b, err := cas.Encode(protocol.FilesKept{Kind: protocol.KindFilesKept, V: protocol.RecordVersion, Prev: kept, Tree: l})
		if err != nil {
			return err
		}
		batch.Blocks, kept, last = append(batch.Blocks, b), b.Link, l
	}
	if kept != x.kept {
		batch.Moves = append(batch.Moves, cas.Move{Name: protocol.FilesHead(x.rec.Run), Old: x.kept, New: kept, Note: x.rec.State})
	}
	if x.rec.Chat != nil && x.rec.State == protocol.RestoreDone {
		err = x.commitMove(ctx, batch, kept, last)
	} else {
		err = x.e.Store.Commit(ctx, batch)
	}
	if err != nil {
		return fmt.Errorf("the restoring of files in %s: %w", x.rec.Workspace, err)
	}
	x.head, x.kept, x.last = rec.Link, kept, last
	x.keep.blocks, x.keep.size = nil, 0
	clear(x.keep.seen)
	return nil
}

// A RestoreOpenError is why a restoring of files ended between both states of the files.
type RestoreOpenError struct{ Err error }

func (e *RestoreOpenError) Error() string { return e.Err.Error() }
func (e *RestoreOpenError) Unwrap() error { return e.Err }

// act changes the files, and records the outcome.
func (x *restoring) act(ctx context.Context, state string) (*api.FilesRestored, error) {
	r := workspace.Restoring{Open: func(it tree.Item) (io.ReadCloser, error) {
		f, err := tree.Open(x.read, it.Entry)
		return io.NopCloser(f), api.NotKept(x.rec.Run, x.to, err)
	}}
	if x.each != nil {
		r.Each = func(done int) { x.each(done, len(x.changes)) }
	}
	if x.rec.Force && state == protocol.RestoreDone {
		r.Keep = func(path string, is tree.Entry, _ io.Reader) error {
			if was := x.undo[path]; was.Mode != is.Mode || was.Link != is.Link || was.Size != is.Size {
				return &workspace.LeaveError{Why: cmp.Or(x.refused[path], "it was changed meanwhile")}
			}
			return nil // Undo has it
		}
	}
	out, err := workspace.Restore(ctx, x.rec.Workspace, x.changes, r)
	if err != nil {
		return nil, &RestoreOpenError{err}
	}
	if state == protocol.RestoreDone && x.stopped(out.Conflicts) {
		return x.takeBack(ctx, out.Conflicts)
	}
	left := map[string]bool{}
	for _, c := range out.Conflicts {
		left[c.Path] = true
		if len(x.rec.Conflicts) < protocol.RestoreConflicts {
			x.rec.Conflicts = append(x.rec.Conflicts, c.Path)
		}
	}
	edits := map[string]tree.Entry{}
	for _, c := range x.changes {
		if !left[c.Path] {
			edits[c.Path] = c.After
		}
	}
	ctx = context.WithoutCancel(ctx) // it is done
	x.keep.ctx, x.read = ctx, x.e.Store.Reader(ctx)
	if err := x.keep.hold(); err != nil {
		return nil, err
	}
	now := x.to
	if state == protocol.RestoreDone {
		if now, err = tree.Edit(x.read, x.from, edits, x.keep.put); err != nil {
			return nil, api.NotKept(x.rec.Run, x.from, err)
		}
	}
	x.rec.State, x.rec.Tree, x.rec.Changed, x.rec.At = state, now.String(), len(out.Changed), x.e.now()
	if err := x.commit(ctx, now); err != nil {
		return nil, &RestoreOpenError{err}
	}
	return x.result(state, out), nil
}

// giveUp ends a restoring whose run is gone: the files stay as they are.
func (x *restoring) giveUp(ctx context.Context) (*api.FilesRestored, error) {
	x.rec.State, x.rec.At = protocol.RestoreAborted, x.e.now()
	if err := x.commit(ctx); err != nil {
		return nil, err
	}
	out := x.result(x.rec.State, workspace.Restored{})
	out.Conflicts = append(out.Conflicts, api.LeftAlone{Path: ".", Why: "the files of the run are no longer kept: all stays as it is"})
	return out, nil
}

func (x *restoring) result(state string, out workspace.Restored) *api.FilesRestored {
	v := &api.FilesRestored{Schema: "wf.restored/v1", Run: x.rec.Run, Workspace: x.rec.Workspace, State: state, From: x.rec.From, To: x.rec.To, Undo: x.rec.Undo,
		Changed: append([]string{}, out.Changed...), Kept: append([]string{}, out.Kept...), Conflicts: []api.LeftAlone{}}
	for _, c := range out.Conflicts {
		v.Conflicts = append(v.Conflicts, api.LeftAlone{Path: c.Path, Why: c.Why})
	}
	if x.rec.Chat != nil && state == protocol.RestoreDone {
		v.Next = x.rec.Chat.Next
	}
	return v
}
