package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// In a store of several machines a run works in the files of one. Where its files are recorded it may move: another machine lays out
// what was recorded last, and the run goes on in that. The first machine keeps what it has.
//
//	the store gives it out, as no process of its machine took it │ a person asks
//	  └─► claimed ─► the newest tree of the run and its sub-workflows ─► laid out ─► files_laid ─► driven here
//	        └─► nothing says what the files are now: it stays, and waits for its machine

// elsewhere reports whether a run works in files of another machine.
func (e *Engine) elsewhere(s *rules.State) bool {
	return e.Machine != "" && s.Info.Workspace != "" && s.Info.Machine != "" && s.Info.Machine != e.Machine
}

// errElsewhere is the error of what has to be done where the files of a run are.
func errElsewhere(run protocol.RunID, s *rules.State) error {
	return protocol.ErrLacks.With("use wf there, or have it go on in a copy of its files here: wf resume "+string(run)+" --here",
		"run %s works in %s on another machine (%s)", run, s.Info.Workspace, s.Info.Machine)
}

// bring has a run go on here whose files are on another machine, in a copy of them; one whose files are here is left alone. An error that wraps
// protocol.ErrLacks is that it stays there.
func (d *driver) bring(ctx context.Context, o DriveOptions) error {
	if !d.e.elsewhere(d.s) {
		return nil
	}
	if p := parentOf(d.s); p != nil {
		above, err := d.e.State(ctx, p.Run)
		if err != nil {
			return err
		}
		if above.Info.Machine != d.e.Machine {
			return errElsewhere(d.run, d.s)
		}
		return d.laid(ctx, protocol.FilesLaid{Workspace: above.Info.Workspace, Machine: d.e.Machine, By: o.by()})
	}
	dir, err := d.e.forkDir(d.run, d.s.Seq+1)
	if err != nil {
		return err
	}
	if err := d.e.mayDriveIn(d.run, d.s, dir, o.Limits); err != nil {
		return err
	}
	var left []string
	var drop func() error
	root, err := d.e.newestFiles(ctx, d.run, d.s)
	if err == nil {
		left, drop, err = d.e.layFork(ctx, d.run, d.run, d.s.Seq+1, root)
	}
	if errors.Is(err, protocol.ErrNotFound) {
		err = errUnknownFiles(d.run, d.s, "the store has not all of them any more: "+err.Error())
	}
	if errors.Is(err, protocol.ErrLacks) { // it is not given out to other machines again before it was driven on its own
		return cmp.Or(d.standsAs(ctx, stayPut(Standing(d.run, d.s))), err)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", d.run, err)
	}
	laid := protocol.FilesLaid{Workspace: dir, Machine: d.e.Machine, Tree: root.String(), By: o.by(), LeftOut: left}
	if n := len(left); n > protocol.FilesLeftOut {
		laid.LeftOut, laid.LeftOutCount = left[:protocol.FilesLeftOut], n
	}
	for i, what := range laid.LeftOut {
		laid.LeftOut[i] = clean(what)
	}
	if err := d.laid(ctx, laid); err != nil {
		return errors.Join(err, drop())
	}
	return nil
}

// laid records that the run works here from now on, before anything of it goes on.
func (d *driver) laid(ctx context.Context, x protocol.FilesLaid) error {
	err := d.append(context.WithoutCancel(ctx), []cas.Draft{{Data: x}}, nil)
	d.over, d.last = false, false
	return err
}

// by is the person or program that goes on with a run.
func (o DriveOptions) by() string { return cmp.Or(o.By, "wf") }

// stayPut has a run wait for the machine of its files.
func stayPut(x cas.Standing) cas.Standing {
	if x.Home != "" {
		x.Needs, x.Home = append(slices.Clip(x.Needs), x.Home), ""
	}
	return x
}

// newestFiles is the tree of what the workspace of a run held last, as far as it and its sub-workflows recorded that. Where nothing says what
// is there now, the error wraps protocol.ErrLacks.
func (e *Engine) newestFiles(ctx context.Context, run protocol.RunID, s *rules.State) (root protocol.Link, err error) {
	if err := e.openCopies(run, s); err != nil {
		return root, err
	}
	parts, err := e.Descendants(ctx, run)
	if err != nil {
		return root, err
	}
	last, err := e.lastLook(ctx, run)
	for _, part := range parts {
		if err != nil {
			return root, err
		}
		var x lastLook
		if x, err = e.lastLook(ctx, part); err == nil && x.ts > last.ts {
			last = x
		}
	}
	if err == nil {
		last, err = e.restoredSince(ctx, s, last)
	}
	if err != nil {
		return root, err
	}
	if last.why != "" || last.tree == "" {
		return root, errUnknownFiles(run, s, cmp.Or(last.why, "it recorded nothing"))
	}
	return protocol.ParseLink(last.tree)
}

// errUnknownFiles is the error of a run whose files cannot be laid out here.
func errUnknownFiles(run protocol.RunID, s *rules.State, why string) error {
	return protocol.ErrLacks.With("wf serve on that machine goes on with it; or wf fork "+string(run)+":STEP --files makes a fork with the files as a step found them",
		"run %s works in %s on another machine (%s), and it is not known what is there: %s", run, s.Info.Workspace, s.Info.Machine, why)
}

// openCopies is nil where no visit of a run has files of its own that are on its machine alone.
func (e *Engine) openCopies(run protocol.RunID, s *rules.State) error {
	for v := range s.Visits() {
		role, ok := s.Program().Workflow.RoleNamed(v.Begun.Role)
		if ok && role.Workspace != nil && v.Mode != rules.Ended {
			return protocol.ErrLacks.With("it goes on at wf serve on that machine", "run %s: %s works in a copy of its own of the files, on another machine (%s)", run, v.Step, s.Info.Machine)
		}
	}
	return nil
}

// A lastLook is what is known of a workspace since a time, unix µs: a tree, or why none.
type lastLook struct {
	ts        int64
	tree, why string
}

// lastLook is what a run tells last of the files that it works in. Of one that records nothing, although its roles may change files, it is
// that nothing is known.
func (e *Engine) lastLook(ctx context.Context, run protocol.RunID) (last lastLook, err error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return last, err
	}
	tracked := s.Tracked != nil && s.Tracked.On
	if !tracked {
		if e.mayChangeFiles(s.Program().Workflow) {
			last = lastLook{ts: s.TS, why: fmt.Sprintf("run %s does not record the files that its roles change", run)}
		}
		return last, nil
	}
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return last, err
		}
		switch x.Type {
		case protocol.EvForked: // its files may be others than those of its base
			last = lastLook{ts: x.TS, why: "nothing was recorded since the fork began"}
		case protocol.EvFilesTracked:
			d, err := cas.DecodeData[protocol.FilesTracked](&x.Event)
			if err != nil {
				return last, err
			}
			last = lastLook{ts: x.TS, tree: d.Tree}
		case protocol.EvFilesAt:
			d, err := cas.DecodeData[protocol.FilesAt](&x.Event)
			if err != nil {
				return last, err
			}
			last = lastLook{x.TS, d.Tree, d.Why}
		case protocol.EvFilesLaid:
			d, err := cas.DecodeData[protocol.FilesLaid](&x.Event)
			if err != nil {
				return last, err
			}
			if d.Tree != "" {
				last = lastLook{ts: x.TS, tree: d.Tree}
			}
		}
	}
	return last, nil
}

// mayChangeFiles reports whether a role of a workflow may change the workspace.
func (e *Engine) mayChangeFiles(w *protocol.Workflow) bool {
	return slices.ContainsFunc(w.Roles, func(r protocol.Role) bool { return e.mayWrite(&r, "") })
}

// restoredSince is what was restored in the workspace of a run after it was looked at last.
func (e *Engine) restoredSince(ctx context.Context, s *rules.State, last lastLook) (lastLook, error) {
	x := &restoring{e: e}
	if err := x.openOn(ctx, s.Info.Machine, s.Info.Workspace); err != nil {
		return last, err
	}
	switch {
	case !x.head.Defined() || x.rec.At <= last.ts:
		return last, nil
	case x.rec.State == protocol.RestoreBegun:
		return lastLook{x.rec.At, "", "its files were being restored there"}, nil
	}
	return lastLook{x.rec.At, x.rec.Tree, ""}, nil
}
