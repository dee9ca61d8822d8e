package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// lookAgain is how often what waits for a slot looks for one that is free without a commit that tells of it: that of a run
// whose process was killed as it ended.
const lookAgain = time.Second

// admission returns when the run holds a slot of the group of its workflow, or has ended. facts are what is recorded
// before that; those that are still to be recorded are given back. A run that waits is queued; when ctx ends it leaves the
// queue and is suspended, unless it is to go on by itself: with a daemon that starts again, or with the run that it is
// a part of. One that closes waits for no slot: what holds it may wait for this run to end.
func (d *driver) admission(ctx context.Context, facts []cas.Draft) ([]cas.Draft, error) {
	quiet := context.WithoutCancel(ctx)
	w, err := d.e.turnOf(quiet, d.run, parentOf(d.s), d.s.Program().Workflow, d.s.Info.Groups)
	if w == nil || err != nil || d.s.Closing != nil {
		return facts, err
	}
	begins := d.s.Info.Forked.Defined() && d.s.Status() == protocol.Running // else it began before, or Begin took its place
	for asked := map[protocol.RunID]bool{}; ; {
		since, err := d.e.Store.Changes(quiet)
		if err != nil {
			return nil, err
		}
		admitted, err := d.place(quiet, w, begins, facts)
		switch {
		case errors.Is(err, protocol.ErrHeadMoved):
			if err := d.load(quiet); err != nil || d.s.Status().Final() {
				return nil, err
			}
			if d.s.Closing != nil {
				return facts, nil
			}
			continue
		case err != nil:
			return nil, err
		case admitted:
			return nil, nil
		}
		facts = nil
		if q := d.s.Queue; q != nil && q.Replaces {
			if err := d.cancelOlder(ctx, w, asked); err != nil && ctx.Err() == nil {
				return nil, err
			}
		}
		if err := d.awaitTurn(ctx, since); err != nil || d.s.Status().Final() || d.s.Closing != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, d.leaveQueue(ctx, w)
		}
	}
}

// place has the run enter its group, or wait in its queue, together with facts. An error that wraps ErrHeadMoved
// means that another process wrote first, and that nothing was written.
func (d *driver) place(ctx context.Context, w *want, begins bool, facts []cas.Draft) (admitted bool, err error) {
	g, err := d.e.group(ctx, w.group)
	if err != nil {
		return false, err
	}
	if g.Has(w.Use) {
		return true, d.record(ctx, facts, nil)
	}
	if g.Ticket(w.Use) == 0 || d.s.Queue == nil {
		at, place, err := d.e.takePlace(ctx, w, begins)
		if err != nil {
			return false, err
		}
		_, admitted = place.(protocol.AdmittedTo)
		return admitted, d.record(ctx, append(facts, cas.Draft{Data: place}), at)
	}
	if admitted, err = d.e.room(ctx, &g, w); err != nil {
		return false, err
	}
	if admitted {
		facts = append(facts, cas.Draft{Data: protocol.AdmittedTo{Group: w.group, Ticket: g.Enter(w.Entry)}})
	}
	return admitted, d.record(ctx, facts, &g)
}

// record writes events before anything is performed, with a group; nothing where there are no events.
func (d *driver) record(ctx context.Context, drafts []cas.Draft, g *groupAt) error {
	if len(drafts) == 0 {
		return nil
	}
	blocks, moves, err := g.changes(nil)
	if err != nil {
		return err
	}
	st, err := d.j.Stage(max(d.e.now(), d.s.TS), drafts, blocks)
	if err != nil {
		return err
	}
	st.With(moves...)
	d.fresh.add(st.Blocks())
	if err := d.s.FoldMore(these(st.Entries()...)); err != nil { // ahead of the disk, as put does
		return err
	}
	d.stand(st)
	entries, err := d.j.Commit(ctx, st)
	if err != nil {
		return err
	}
	d.e.notify(aboutRun(d.run, d.s), entries, drafts)
	if d.stored != nil {
		d.stored(entries, drafts)
	}
	return nil
}

// awaitTurn waits for a commit of any process, and takes in what others wrote to the run.
func (d *driver) awaitTurn(ctx context.Context, since uint64) error {
	wait, stop := context.WithTimeout(ctx, lookAgain)
	defer stop()
	if _, err := d.e.Store.AwaitChange(wait, since); err != nil && wait.Err() == nil {
		return err
	}
	return d.catchup(context.WithoutCancel(ctx))
}

// leaveQueue ends the wait for a turn.
func (d *driver) leaveQueue(ctx context.Context, w *want) error {
	why := context.Cause(ctx)
	if errors.Is(why, protocol.ErrServeStopped) || parentOf(d.s) != nil {
		return ctx.Err()
	}
	quiet := context.WithoutCancel(ctx)
	suspended := cas.Draft{Data: protocol.SuspendedBy{Reason: protocol.ByInterrupt, Detail: protocol.NewText(why.Error()), Code: protocol.CodeOf(why)}}
	for {
		g, err := d.e.group(quiet, w.group)
		if err != nil {
			return err
		}
		g.Sweep(func(u protocol.Use) bool { return u == w.Use })
		err = d.record(quiet, []cas.Draft{suspended}, &g)
		if err == nil {
			return ctx.Err()
		}
		if errors.Is(err, protocol.ErrHeadMoved) {
			err = d.load(quiet)
		}
		if err != nil || d.s.Status().Final() {
			return err
		}
	}
}

// cancelOlder has the runs of the same workflow that are in the group with an older ticket cancelled, each once: those that
// wait, and those that hold a slot. Those that close, and no process drives, are driven to their ends, until closing ends;
// nothing of what closes is skipped. Sub-workflows and runs of other workflows are waited for.
func (d *driver) cancelOlder(closing context.Context, w *want, asked map[protocol.RunID]bool) error {
	ctx := context.WithoutCancel(closing)
	g, err := d.e.group(ctx, w.group)
	if err != nil {
		return err
	}
	mine := g.Ticket(w.Use)
	older := func(ticket int64, root protocol.RunID, u protocol.Use) error {
		if ticket >= mine || u.Step != "" || u.Run != root || asked[root] {
			return nil
		}
		s, err := d.e.State(ctx, root)
		if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
			return nil
		}
		if err != nil {
			return err
		}
		if same, err := d.replaces(ctx, root, s); !same || err != nil {
			return err
		}
		asked[root] = true
		by := "run " + string(d.run)
		closes, err := d.e.CancelOnce(ctx, root, by, fmt.Sprintf("run %s takes its place in the concurrency group %s", d.run, w.group))
		if errors.Is(err, protocol.ErrFinal) {
			return nil
		}
		return errors.Join(err, d.e.CloseRuns(closing, closes, by))
	}
	for _, c := range g.Group.Group.Queue {
		if err := older(c.Ticket, c.Root, c.Use); err != nil {
			return err
		}
	}
	for _, s := range g.Slots {
		if err := older(s.Ticket, s.Root, s.Uses[0]); err != nil {
			return err
		}
	}
	return nil
}

// replaces reports whether a run may be cancelled for this one: it is the user's own, of a workflow of the same name, that
// was read from the same file or has the same definition.
func (d *driver) replaces(ctx context.Context, run protocol.RunID, s *rules.State) (bool, error) {
	if s.Program().Workflow.Name != d.s.Program().Workflow.Name || s.Info.Workspace != d.s.Info.Workspace {
		return false, nil
	}
	if s.Info.File != d.s.Info.File || s.Info.File == "" {
		if s.Start != d.s.Start {
			a, err := s.Program().Block()
			if err != nil {
				return false, err
			}
			b, err := d.s.Program().Block()
			if err != nil || a.Link != b.Link {
				return false, err
			}
		}
	}
	err := d.e.Own(ctx, run)
	if errors.Is(err, protocol.ErrForeign) || errors.Is(err, protocol.ErrRolledBack) {
		return false, nil
	}
	return err == nil, err
}
