package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// A fan is the visits of one firing: their own copies of the workspace begin with the same tree.
type fan struct {
	mu     sync.Mutex    // held while the first copy is made
	base   protocol.Link // null before
	layers layers
}

// ownVisit is a visit with a copy of the workspace for itself.
type ownVisit struct {
	fan  *fan
	base protocol.Link   // as far as the journal knows it; once the copy is made, its base
	from protocol.Link   // the tree that the visit begins with, where it goes on from another one's copy
	seen *workspace.Seen // of the files that it begins with; nil where they are not known
}

// goal is the tree that the visit begins with, null where that is yet to be taken.
func (o *ownVisit) goal() protocol.Link { return cmp.Or(o.from, o.base) }

// ownOutcome is what became of an own copy, or of a merge of several.
type ownOutcome struct {
	artifacts
	files    *protocol.OwnFiles
	recorded func() // called when the record is on disk; may be nil
}

// ownVisit finds what the copy of a visit begins with.
func (d *driver) ownVisit(v *rules.Visit) (*ownVisit, error) {
	id := v.Step
	id.Index = -1
	if d.fans == nil {
		d.fans = map[protocol.StepID]*fan{}
	}
	if d.fans[id] == nil {
		d.fans[id] = &fan{}
	}
	own := &ownVisit{fan: d.fans[id], base: v.Base}
	before, err := goesOnFrom(d.from, v.Begun.Start, v.Begun.Parents, v.Begun.Via)
	if err == nil && before != nil {
		own.base, own.from = before.Base, before.Tree
	}
	return own, err
}

// goesOnFrom is the own copy of the one visit that another, with these parents, goes on from, unless it is an item of a fan-out, or
// was merged; nil where there is none.
func goesOnFrom(from rules.Records, start protocol.Link, parents []protocol.Link, via protocol.Via) (*protocol.OwnFiles, error) {
	if len(parents) != 1 || via == protocol.ViaStart || parents[0] == start {
		return nil, nil
	}
	rec, err := from.Step(parents[0])
	if err != nil || rec.Own == nil || rec.Item != nil {
		return nil, err
	}
	merge, err := mergeOf(from, rec)
	if err != nil || merge != "" {
		return nil, err
	}
	return rec.Own, nil
}

// mergeOf is the role that the role of a record merges, "" for none.
func mergeOf(from rules.Records, rec *protocol.StepRecord) (string, error) {
	o, err := from.Open(rec.Start)
	if err != nil {
		return "", err
	}
	if role, ok := o.Program.Workflow.RoleNamed(rec.Role); ok && role.Merge != nil {
		return role.Merge.Of, nil
	}
	return "", nil
}

// errCopyGone is the error of an agent whose copy of the workspace is gone in the middle of its work.
var errCopyGone = &protocol.Error{Code: "copy_gone", Message: "the copy of the workspace in which the agent worked is gone",
	Hint: "wf fork begins the step anew"}

// enterOwn has a visit work in its own copy. It is made anew, so that each attempt begins with the same files, unless the visit goes on in
// the one that it worked in. leave is to be called when the visit has ended, well or not.
func (e *Engine) enterOwn(ctx context.Context, x *assignment, emit roles.Emit) (leave func(), err error) {
	turn := &x.turn
	if e.Copies == "" {
		return nil, fmt.Errorf("%s: there is no directory for copies of the workspace: %w", turn.Step, protocol.ErrInvalid)
	}
	o, mark, err := roles.OpenOwnCopy(e.Copies, turn.Run, copyName(turn.Key))
	if err != nil {
		return nil, fmt.Errorf("own copy of the workspace of %s: %w", turn.Step, err)
	}
	unmount := func() error { return nil }
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	base, layered := roles.InLayers(mark)
	goesOn, acted, err := goesOnInCopy(turn)
	if err != nil {
		return nil, err
	}
	made := goesOn && mark != "" && base == x.own.base.String()
	if made && layered {
		if unmount, err = e.mountAgain(x, o); copyGone(err) {
			made, err = false, nil
		} else if err != nil {
			return nil, err
		}
	}
	if !made {
		if acted {
			return nil, fmt.Errorf("%s: %s: %w", turn.Step, o.Files(), errCopyGone)
		}
		if mark != "" {
			if err := o.Empty(); err != nil {
				return nil, err
			}
		}
		if unmount, err = e.makeCopy(ctx, x, o, emit); err != nil {
			return nil, copyFailure(turn, err)
		}
	}
	if e.placesCopies(turn) {
		turn.At = turn.Workspace
	}
	turn.Workspace, turn.Private = o.Files(), o.Private()
	aside(turn)
	return func() {
		if err := unmount(); err != nil {
			e.warn(fmt.Errorf("own copy of the workspace of %s: %w", turn.Step, err))
		}
		_ = o.Close() // nothing was written to the lock
	}, nil
}

// goesOnInCopy reports whether an attempt goes on where the one before it ended, and whether that may have changed files. What a
// command did before it was cut off is not recorded: it begins anew. So does an agent whose attempt failed, unless that keeps what it did.
func goesOnInCopy(turn *protocol.Turn) (goesOn, acted bool, err error) {
	if turn.Role.Action == protocol.ActRun {
		return false, false, nil
	}
	goesOn = true
	for i := range turn.Transcript {
		switch x := &turn.Transcript[i]; x.Type {
		case protocol.EvToolCall:
			goesOn, acted = true, true
		case protocol.EvAttemptFailed:
			d, err := cas.DecodeData[protocol.AttemptFailed](&x.Event)
			if err != nil {
				return false, false, fmt.Errorf("event %d: %w", x.Seq, err)
			}
			if !d.Keeps && turn.Role.Action == protocol.ActPrompt {
				goesOn, acted = false, false
			}
		}
	}
	return goesOn, acted, nil
}

// aside has git look for no repository above the workspace of a turn.
func aside(turn *protocol.Turn) {
	if turn.Env = maps.Clone(turn.Env); turn.Env == nil {
		turn.Env = map[string]string{}
	}
	turn.Env["GIT_CEILING_DIRECTORIES"] = filepath.Dir(turn.Workspace)
}

// placesCopies reports whether the commands of a visit find its copy where the workspace lies, and nothing of the workspace itself:
// what compilers and caches know by paths then holds for the copy too.
func (e *Engine) placesCopies(turn *protocol.Turn) bool {
	if turn.Role.Sandbox == protocol.SandboxOff || turn.Role.Action == protocol.ActRun && !turn.Confined {
		return false
	}
	run, _ := e.Performers[protocol.ActRun].(*roles.Run)
	if run == nil {
		return false
	}
	hiding, ok := run.Walls.(roles.Hiding)
	if !ok {
		return false
	}
	_, err := hiding.Hides()
	return err == nil
}

// copyName is how the copy of a visit is called, by its key: paths of sockets below it may have 107 bytes.
func copyName(key string) string { return key[:16] }

// copyFailure is a failure of the visit where the copy is too large; other errors are of this machine.
func copyFailure(turn *protocol.Turn, err error) error {
	if tooLarge, ok := errors.AsType[*workspace.CopyError](err); ok {
		return &protocol.Failure{Err: err, Class: "copy", ErrorInfo: protocol.ErrorInfo{Code: "copy_limit", Phase: "workspace",
			Message: tooLarge.Error() + "; raise workspace.max_copy of the role, or leave files out by .wfignore"}}
	}
	return fmt.Errorf("own copy of the workspace of %s: %w", turn.Step, err)
}

// makeCopy fills the copy of a visit. The first one of a fan-out decides with which tree all of them begin: it is on disk, and in
// the journal, before the copy counts as made. unmount is to be called when nothing works in it any more.
func (e *Engine) makeCopy(ctx context.Context, x *assignment, o *roles.OwnCopy, emit roles.Emit) (unmount func() error, err error) {
	if unmount, can, err := e.layCopy(ctx, x, o, emit); can || err != nil {
		return unmount, err
	}
	unmount = func() error { return nil }
	f, own := x.own.fan, x.own
	f.mu.Lock()
	f.base = cmp.Or(f.base, own.base)
	first := !f.base.Defined()
	if first {
		defer f.mu.Unlock()
	} else {
		own.base = f.base
		f.mu.Unlock()
	}
	made, err := e.copyWorkspace(ctx, x, o.Files())
	if err != nil {
		return nil, err
	}
	if made.Base = own.base; first {
		var release func()
		made.Base, release, err = e.storeTree(ctx, &x.turn, o.Files(), nil)
		defer release()
	} else {
		_, err = e.bring(ctx, &x.turn, o.Files(), own.base, own.goal(), nil)
	}
	if err != nil {
		return nil, err
	}
	if err := emit(ctx, made); err != nil {
		return nil, err
	}
	if first {
		f.base, own.base = made.Base, made.Base
	}
	return unmount, o.Ready(made.Base.String())
}

// copyWorkspace copies the workspace of a visit into an empty directory, and tells what that took.
func (e *Engine) copyWorkspace(ctx context.Context, x *assignment, to string) (protocol.OwnCopy, error) {
	spec := x.turn.Role.Workspace
	carry, err := tree.NewGlobs(spec.Carry)
	if err != nil {
		return protocol.OwnCopy{}, err
	}
	choose, err := tree.NewIgnored(workspace.RulesOf(x.turn.Workspace), carry, tree.Globs{})
	if err != nil {
		return protocol.OwnCopy{}, err
	}
	c, err := workspace.Copy(ctx, x.turn.Workspace, to, workspace.Copying{Choose: choose, Max: cmp.Or(spec.MaxCopy, protocol.OwnCopyMax), Without: e.Copies})
	return protocol.OwnCopy{Files: c.Files, Bytes: c.Bytes, Shared: c.Shared}, err
}

// storeTree takes the tree of a copy that was just made, and stores it. Until release is called no collection removes it.
func (e *Engine) storeTree(ctx context.Context, turn *protocol.Turn, dir string, seen *workspace.Seen) (root protocol.Link, release func(), err error) {
	keep := newKeeper(ctx, e)
	if root, err = e.treeOf(ctx, turn, dir, workspace.RulesOf(dir), keep.put, seen); err == nil {
		err = keep.flush()
	}
	return root, keep.letGo, err
}

// bring makes a copy of the workspace, which may have changed since the first copy was made, have the files of a tree. same
// reports that it had them.
func (e *Engine) bring(ctx context.Context, turn *protocol.Turn, dir string, base, goal protocol.Link, seen *workspace.Seen) (same bool, err error) {
	read := tree.Read(e.reader(ctx))
	ignore, err := ignoreOf(read, base)
	if err != nil {
		return false, err
	}
	nodes := map[protocol.Link][]byte{}
	is, err := e.treeOf(ctx, turn, dir, ignore, func(b tree.Block) error {
		if !b.IsRaw() {
			nodes[b.Link] = b.Data
		}
		return nil
	}, seen)
	if err != nil || is == goal {
		return err == nil, err
	}
	both := func(l protocol.Link) ([]byte, error) {
		if b, ok := nodes[l]; ok {
			return b, nil
		}
		return read(l)
	}
	done, err := restoreFiles(ctx, both, dir, is, goal, nil)
	if err != nil {
		return false, err
	}
	for _, c := range done.Conflicts {
		return false, fmt.Errorf("%s cannot be as it was when the others of the fan-out began: %s", c.Path, c.Why)
	}
	return false, nil
}

// restoreFiles changes the files of a directory by what differs between two trees, but for what neither of them has the content of.
func restoreFiles(ctx context.Context, read tree.Read, dir string, from, to protocol.Link, leave func(path string) string) (workspace.Restored, error) {
	var changes []tree.Change
	for c, err := range tree.Diff(read, from, to) {
		if err != nil {
			return workspace.Restored{}, err
		}
		if c.Before.Mode != tree.Omitted && c.After.Mode != tree.Omitted {
			changes = append(changes, c)
		}
	}
	return workspace.Restore(ctx, dir, changes, workspace.Restoring{Leave: leave, Open: func(it tree.Item) (io.ReadCloser, error) {
		r, err := tree.Open(read, it.Entry)
		return io.NopCloser(r), err
	}})
}

// heldIn says of which paths of a workspace commands that ran in a copy of it have nothing put there: those on which git or wf acts. In the
// workspace they are read-only; in a copy, where no repository is, they are files as others.
func heldIn(dir string) (leave func(path string) (why string), err error) {
	by, err := appear.Held(dir)
	if err != nil {
		return nil, err
	}
	return func(path string) string {
		if name := by(path); name != "" {
			return fmt.Sprintf("git or wf acts on it, as %s", name)
		}
		return ""
	}, nil
}

// maxOwnFiles is how many files the tree of a copy has at most: as many as can be walked.
const maxOwnFiles = tree.WalkMax

// treeOf takes the tree of a copy, but for what the rules ignore. What has not changed since it was seen is not read.
func (e *Engine) treeOf(ctx context.Context, turn *protocol.Turn, dir string, ignore tree.Rules, put func(tree.Block) error, seen *workspace.Seen) (protocol.Link, error) {
	choose, err := tree.NewIgnored(ignore, tree.Globs{}, tree.Globs{})
	if err != nil {
		return protocol.Link{}, err
	}
	secrets := roles.Secrets(os.Environ(), turn.Secrets)
	root, _, err := workspace.Take(ctx, dir, workspace.Taking{
		Choose: choose, Whole: true, Put: put, Seen: seen,
		MaxSize: protocol.OwnFileMax, MaxTotal: protocol.MaxSafeInt, MaxFiles: maxOwnFiles,
		Scan: func() workspace.Scanner { return roles.NewFinder(secrets) },
	})
	return root, err
}

// ignoreOf are the rules of a tree.
func ignoreOf(read tree.Read, root protocol.Link) (tree.Rules, error) {
	in, err := rulesIn(read, root)
	return func(path string) ([]byte, error) { return in[path], nil }, err
}

// takeOwn takes the tree of a copy when its visit has gone well.
func (e *Engine) takeOwn(ctx context.Context, x *assignment, end *outcome) {
	if end.err != nil || ctx.Err() != nil {
		return
	}
	keep := newKeeper(ctx, e)
	ignore, err := ignoreOf(keep.read, x.own.base)
	var root protocol.Link
	if err == nil {
		root, err = e.treeOf(ctx, &x.turn, x.turn.Workspace, ignore, keep.put, x.own.seen)
	}
	end.own.artifacts = artifacts{root: root, blocks: keep.blocks, release: keep.release}
	if err != nil {
		end.err = fmt.Errorf("own copy of the workspace of %s: %w", x.turn.Step, err)
		return
	}
	end.own.files = &protocol.OwnFiles{Base: x.own.base, Tree: root}
}
