package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
)

// layers are what the copies of a fan-out share where they lie in layers: one copy of the workspace that is never changed.
//
//	the first visit ─► base ─► its tree is stored and in the journal ─► a layer over it
//	each other one ──────────────────────────────────────────────────► a layer over it
type layers struct {
	cannot bool             // the machine cannot do it, so that each visit has a copy of all files
	goal   protocol.Link    // the tree of the base, once it is made
	copied protocol.OwnCopy // what it took
	seen   *workspace.Seen  // of its files; nil where not all of what was seen is stored
}

// layering are the walls by which the copy of a visit can lie in layers, nil for none. Only copies of a fan-out do: of one alone
// nothing is shared.
func (e *Engine) layering(x *assignment) roles.Layering {
	by, ok := x.by.(roles.Layered)
	if x.begun.Item == nil || x.turn.Role.Workspace.Whole || x.turn.Role.Caching != nil || !ok || !by.Layered(x.turn) || !e.placesCopies(&x.turn) {
		return nil
	}
	run, _ := e.Performers[protocol.ActRun].(*roles.Run) // as placesCopies has found
	w, _ := run.Walls.(roles.Layering)
	return w
}

// baseKey is the key of the base that a visit shares with the other items.
func baseKey(run protocol.RunID, begun protocol.StepStarted) string {
	begun.Item = nil
	return roles.BaseKey(copyName(rules.StepKey(run, &begun)))
}

// mountAgain mounts a copy that an earlier attempt has made. An error wrapping fs.ErrNotExist says that its base is gone.
func (e *Engine) mountAgain(x *assignment, o *roles.OwnCopy) (leave func() error, err error) {
	w := e.layering(x)
	if w == nil {
		return nil, fmt.Errorf("%s lies in layers, which this machine cannot mount (wf doctor says what is missing)", o.Files())
	}
	return o.Mount(w, baseKey(x.turn.Run, x.begun), x.own.goal().String())
}

// layCopy is makeCopy for one in layers; can is false where it cannot be done, and nothing was.
func (e *Engine) layCopy(ctx context.Context, x *assignment, o *roles.OwnCopy, emit roles.Emit) (leave func() error, can bool, err error) {
	w := e.layering(x)
	if w == nil {
		return nil, false, nil
	}
	f, own := x.own.fan, x.own
	f.mu.Lock()
	locked := true
	defer func() {
		if locked {
			f.mu.Unlock()
		}
	}()
	if f.base = cmp.Or(f.base, own.base); f.base.Defined() {
		own.base = f.base
	}
	first := !own.base.Defined()
	known := f.layers.goal.Defined()
	if f.layers.cannot = f.layers.cannot || !known && !o.CanLayer(w); f.layers.cannot {
		return nil, false, o.Empty()
	}
	made := protocol.OwnCopy{}
	if !known {
		release, err := e.makeBase(ctx, x)
		defer release()
		if f.layers.cannot = errors.Is(err, protocol.ErrBusy); f.layers.cannot {
			return nil, false, o.Empty()
		}
		if err != nil {
			return nil, true, err
		}
		made = f.layers.copied
	} else {
		made.Files, made.Shared = f.layers.copied.Files, f.layers.copied.Bytes+f.layers.copied.Shared
	}
	if first {
		own.base = f.layers.goal
	}
	if own.seen = f.layers.seen.Again(); !first {
		locked = false
		f.mu.Unlock()
	}
	if leave, err = o.Mount(w, baseKey(x.turn.Run, x.begun), own.goal().String()); err != nil {
		return nil, true, err
	}
	made.Base = own.base
	if err = emit(ctx, made); err == nil {
		if first {
			f.base = own.base
		}
		err = o.ReadyInLayers(own.base.String())
	}
	if err == nil {
		return leave, true, nil
	}
	if locked { // nothing names the tree of the base
		f.base, f.layers = protocol.Link{}, layers{}
	}
	return nil, true, errors.Join(err, leave())
}

// makeBase makes the base of a fan-out, unless an earlier process has. It is on disk, and its tree in the store, when it counts as
// made. Until release is called no collection removes that.
func (e *Engine) makeBase(ctx context.Context, x *assignment) (release func(), err error) {
	release = func() {}
	f, goal, key := x.own.fan, x.own.goal(), baseKey(x.turn.Run, x.begun)
	made := layers{goal: goal}
	if goal.Defined() { // visits that go on may work over it already
		mark, err := roles.ReadyOwnCopy(e.Copies, x.turn.Run, key)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return release, err
		}
		var is string
		_, _ = fmt.Sscan(mark, &is, &made.copied.Files, &made.copied.Shared) // what is no mark is not the goal
		if is == goal.String() {
			f.layers = made
			return release, nil
		}
	}
	o, _, err := roles.OpenOwnCopy(e.Copies, x.turn.Run, key)
	if err != nil {
		return release, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if err := o.Empty(); err != nil {
		return release, err
	}
	if made.copied, err = e.copyWorkspace(ctx, x, o.Files()); err != nil {
		return release, err
	}
	seen := workspace.NewSeen(0) // a base does not change any more
	if goal.Defined() {
		var same bool
		if same, err = e.bring(ctx, &x.turn, o.Files(), x.own.base, goal, seen); same {
			made.seen = seen
		}
	} else {
		made.seen = seen
		made.goal, release, err = e.storeTree(ctx, &x.turn, o.Files(), seen)
	}
	if err == nil {
		err = o.Ready(fmt.Sprintf("%s %d %d", made.goal, made.copied.Files, made.copied.Bytes+made.copied.Shared))
	}
	if err == nil {
		f.layers = made
	}
	return release, err
}

// copyGone reports whether an error of mountAgain says that there is nothing to go on in.
func copyGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
