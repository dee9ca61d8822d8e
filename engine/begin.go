package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// Begin writes a run's first event. With a request id that was used before it starts nothing
// and returns the run of that id with fresh false; where that run was deleted the error wraps
// protocol.ErrRunDeleted.
func (e *Engine) Begin(ctx context.Context, l Launch) (run protocol.RunID, fresh bool, err error) {
	b, known, err := e.prepared(ctx, l)
	if err != nil || known {
		return b.run, false, err
	}
	fresh, err = e.commitFirst(ctx, b)
	if errors.Is(err, protocol.ErrGroupBusy) {
		return "", false, err // there is no such run
	}
	if err != nil {
		return "", false, fmt.Errorf("start run %s: %w", b.run, err)
	}
	return b.run, fresh, nil
}

// A newRun is a run that is about to begin.
type newRun struct {
	run    protocol.RunID
	l      Launch
	data   protocol.RunStarted
	blocks []cas.Block
	turn   *want // its place in the group of its workflow; nil for none
}

// prepared is all of Begin but the commit. known is that the run is there already.
func (e *Engine) prepared(ctx context.Context, l Launch) (b newRun, known bool, err error) {
	if _, err := protocol.ParseCache(l.Cache); err != nil {
		return b, false, fmt.Errorf("cache of the run: %w", err)
	}
	if _, err := protocol.ParseContext(string(l.Context)); err != nil {
		return b, false, fmt.Errorf("start a run: %w", err)
	}
	if err := e.Store.MayGoOn(ctx); err != nil {
		return b, false, err
	}
	run := l.run
	if run == "" && l.RequestID != "" {
		if run, err = e.RunOfRequest(ctx, l.RequestID); err != nil {
			return b, false, err
		}
	}
	if run == "" {
		if run, err = e.unusedID(ctx); err != nil {
			return b, false, err
		}
	} else {
		switch _, _, err := e.Store.Tip(ctx, run); {
		case err == nil:
			b.run = run
			return b, true, e.requested(ctx, run, l.RequestID)
		case !errors.Is(err, protocol.ErrUnknownRun): // also of one that was deleted: it was started once
			return b, false, err
		}
	}
	if l.parent != nil {
		if l.AllowSecretInputs, err = e.openChildInputs(ctx, &l); err != nil {
			return b, false, err
		}
	} else {
		if err := e.fits(l, false); err != nil {
			return b, false, err
		}
		if err := e.mayAct(ctx, l.Workspace); err != nil {
			return b, false, err
		}
	}
	begin, err := startOf(l.Program, l.Inputs, protocol.Start{Format: protocol.Format})
	if err != nil {
		return b, false, err
	}
	source, sourceBlocks := cas.Payload(l.Source)
	sources := l.sources
	if l.parent == nil {
		var parts []cas.Block
		sources, parts = sourcesOf(l.Program)
		sourceBlocks = append(sourceBlocks, parts...)
	} else if own, ok := sources[begin.def.String()]; ok {
		source, sourceBlocks = own, nil
	}
	hide := hider(l.Program)
	d := protocol.RunStarted{Start: begin.start, Source: source, Sources: sources, Title: hide.String(cmp.Or(l.Title, l.Program.Workflow.Name)), Description: protocol.NewText(hide.String(l.Description)),
		Type: l.Type, Scope: l.Scope, Tags: l.Tags, CreatedBy: l.CreatedBy, ClaimedBy: l.ClaimedBy, TargetUser: l.TargetUser, RequestID: l.RequestID,
		Parent: l.parent, Workspace: l.Workspace, Version: e.Version, Models: l.Models, File: l.File, Context: l.Context, Cache: l.Cache, Trial: l.Trial, Origin: l.Origin, AllowSecretInputs: l.AllowSecretInputs, Trigger: l.Trigger, CausedBy: l.CausedBy}
	if l.Workspace != "" {
		d.Machine = e.Machine
	}
	if l.Place != l.Workspace {
		d.Place = l.Place
	}
	if d.Groups, err = groupsOf(l.Program, l.Inputs, hide); err != nil {
		return b, false, fmt.Errorf("start run %s: %w", run, err)
	}
	b = newRun{run: run, l: l, data: d, blocks: append(begin.blocks, sourceBlocks...)}
	if b.turn, err = e.turnOf(ctx, run, l.parent, l.Program.Workflow, d.Groups); err != nil {
		return b, false, fmt.Errorf("start run %s: %w", run, err)
	}
	return b, false, nil
}

// requested is nil for a run that a request has begun. The ids of runs are short: one that another request has is no run of this one.
func (e *Engine) requested(ctx context.Context, run protocol.RunID, request string) error {
	if request == "" {
		return nil
	}
	x, err := e.entry(ctx, run, 1)
	if err != nil {
		return err
	}
	began, err := cas.DecodeData[protocol.RunStarted](&x.Event)
	if err == nil && began.RequestID != request {
		err = protocol.ErrRequestReused.With("send it with another request id", "run %s has the id of this request, and was begun by another: %q", run, began.RequestID)
	}
	return err
}

// commitFirst writes the first events of a run, with its place in the group of its workflow. fresh is false where another
// process has begun it meanwhile.
func (e *Engine) commitFirst(ctx context.Context, b newRun) (fresh bool, err error) {
	run, l := b.run, b.l
	for now := e.now(); ; {
		j, err := e.Store.Journal(ctx, run)
		if err != nil {
			return false, err
		}
		if head, _ := j.Head(); head.Defined() {
			return false, e.requested(ctx, run, l.RequestID)
		}
		if l.parent != nil {
			j.Under(fenceOf(ctx))
		}
		drafts, g := []cas.Draft{{Data: b.data}}, (*groupAt)(nil)
		if b.turn != nil {
			var place protocol.Data
			if g, place, err = e.takePlace(ctx, b.turn, true); err != nil {
				return false, err
			}
			drafts = append(drafts, cas.Draft{Data: place})
		}
		all, moves, err := g.changes(b.blocks)
		if err != nil {
			return false, err
		}
		st, err := j.Stage(now, drafts, all)
		if err != nil {
			return false, err
		}
		st.With(moves...)
		if err := e.stands(ctx, st, run); err != nil {
			return false, err
		}
		e.note(ctx, run, st.First)
		entries, err := j.Commit(ctx, st)
		switch {
		case errors.Is(err, protocol.ErrHeadMoved):
			continue // of the run, or of the group
		case err != nil:
			return false, err
		}
		e.notify(api.Update{Run: run, Workflow: l.Program.Workflow, Parent: l.parent.ID()}, entries, drafts)
		return true, nil
	}
}

// A Begun is a run that a launch began; Fresh is false where it was there before, or was deleted.
type Begun struct {
	Run   protocol.RunID
	Fresh bool
}

// BeginAll begins runs in their order, as Begin does one after the other, and writes as many as it can at once: a disk is waited for once
// for all of them. Where one cannot begin the err is its, and begun are those before it; those behind it were not tried.
func (e *Engine) BeginAll(ctx context.Context, all []Launch) (begun []Begun, err error) {
	var some []newRun // of those behind begun
	in := map[protocol.RunID]bool{}
	flush := func() error {
		out, err := e.commitAll(ctx, some)
		begun, some = append(begun, out...), some[:0]
		clear(in)
		return err
	}
	for _, l := range all {
		if l.RequestID != "" && in[e.RequestRun(l.RequestID)] {
			if err := flush(); err != nil {
				return begun, err
			}
		}
		b, known, err := e.prepared(ctx, l)
		if err == nil && !known && b.turn == nil {
			some, in[b.run] = append(some, b), true
			continue
		}
		if err := flush(); err != nil {
			return begun, err
		}
		if err == nil && !known { // a place in a group is the newest there is
			one, err := e.beginOne(ctx, l)
			if err != nil {
				return begun, err
			}
			begun = append(begun, one)
			continue
		}
		one, err := e.begunBefore(ctx, l, b.run, err)
		if err != nil {
			return begun, err
		}
		begun = append(begun, one)
	}
	return begun, flush()
}

// beginOne is Begin, for BeginAll.
func (e *Engine) beginOne(ctx context.Context, l Launch) (Begun, error) {
	run, fresh, err := e.Begin(ctx, l)
	if err == nil {
		return Begun{run, fresh}, nil
	}
	return e.begunBefore(ctx, l, run, err)
}

// begunBefore is a run that is there already, or was deleted, by what Begin said of it.
func (e *Engine) begunBefore(ctx context.Context, l Launch, run protocol.RunID, err error) (Begun, error) {
	if errors.Is(err, protocol.ErrRunDeleted) && l.RequestID != "" {
		run, err = e.RunOfRequest(ctx, l.RequestID)
	}
	return Begun{Run: run}, err
}

// commitAll writes the first events of runs in one commit; where that cannot be, one after the other until one cannot.
func (e *Engine) commitAll(ctx context.Context, some []newRun) (begun []Begun, err error) {
	if len(some) > 1 {
		begun, err = e.commitAtOnce(ctx, some)
		if err == nil {
			return begun, nil
		}
	}
	for _, b := range some {
		one, err := e.beginOne(ctx, b.l)
		if err != nil {
			return begun, err
		}
		begun = append(begun, one)
	}
	return begun, nil
}

// commitAtOnce writes the first events of runs, all or none.
func (e *Engine) commitAtOnce(ctx context.Context, some []newRun) (begun []Begun, err error) {
	all := make([]*cas.Staged, len(some))
	for i, b := range some {
		j, err := e.Store.Journal(ctx, b.run)
		if err != nil {
			return nil, err
		}
		if all[i], err = j.Stage(e.now(), []cas.Draft{{Data: b.data}}, b.blocks); err != nil {
			return nil, err
		}
		if err := e.stands(ctx, all[i], b.run); err != nil {
			return nil, err
		}
	}
	e.noteAll(ctx, some, all)
	if err := e.Store.Commit(ctx, cas.AllOf(all)); err != nil {
		return nil, err
	}
	for i, b := range some {
		e.notify(api.Update{Run: b.run, Workflow: b.l.Program.Workflow}, all[i].Entries(), []cas.Draft{{Data: b.data}})
		begun = append(begun, Begun{b.run, true})
	}
	return begun, nil
}
