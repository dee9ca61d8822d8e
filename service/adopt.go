package service

import (
	"context"
	"errors"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/notify"
	"wf/service/query"
	"wf/store"
)

// Adopting is a list of runs that came from elsewhere, with their heads as they were read.
type Adopting struct {
	Runs  []api.Adoptable
	heads []cas.Head
}

// Adoptable lists the runs of a store that came from elsewhere: those that refs name, with those of their
// sub-workflows; without refs all. The user is told of those that cannot be read.
func Adoptable(ctx context.Context, u *compose.Setup, s store.Store, refs []string) (Adopting, error) {
	out := Adopting{Runs: []api.Adoptable{}}
	heads, err := headsToAdopt(ctx, u, s, refs)
	if err != nil {
		return out, err
	}
	for _, h := range heads {
		x, err := adoptable(ctx, u, s, protocol.RunOf(h.Name))
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case err != nil:
			u.Tellf("warning: %s is left as it is: %v", protocol.RunOf(h.Name), err)
		case x != nil:
			out.Runs, out.heads = append(out.Runs, *x), append(out.heads, h)
		}
	}
	return out, nil
}

// Held says of what backup a store was restored in which nothing goes on yet; nil for others, and for a database, which
// is put back by its own tools.
func Held(ctx context.Context, s store.Store) (*cas.Held, error) {
	if dir, ok := s.(*cas.Store); ok {
		return dir.Held(ctx)
	}
	return nil, nil
}

// Adopt lets them go on here. In a store that was restored all runs that have not ended are suspended first: other
// copies of them may have gone on, and what is open may have been done. Then the store is held no more.
func (x Adopting) Adopt(ctx context.Context, u *compose.Setup, s store.Store) error {
	held, err := Held(ctx, s)
	if err != nil {
		return err
	}
	if held == nil {
		return takeOver(ctx, u, s, x.heads)
	}
	all, err := s.Newest(ctx)
	if err != nil {
		return err
	}
	e := u.Engine(s, nil)
	for i, h := range all {
		run := protocol.RunOf(h.Name)
		if err := e.Restored(ctx, run, query.Stamp(held.Made)); err != nil {
			u.Tellf("warning: %s is left as it is: %v", run, err)
		}
		if all[i], err = s.Head(ctx, h.Name); err != nil {
			return err
		}
	}
	if err := takeOver(ctx, u, s, all); err != nil {
		return err
	}
	return s.(*cas.Store).Release(ctx) // of another kind no store is held
}

// takeOver has runs go on here. What they have recorded until now was told elsewhere, or counts as missed.
func takeOver(ctx context.Context, u *compose.Setup, s store.Store, heads []cas.Head) error {
	if err := notify.PassOver(ctx, s, time.Now(), heads); err != nil {
		return err
	}
	if err := u.Pins(s).Adopt(ctx, heads); err != nil {
		return err
	}
	runs := make([]protocol.RunID, len(heads))
	for i, h := range heads {
		runs[i] = protocol.RunOf(h.Name)
	}
	return u.Engine(s, nil).Adopted(ctx, runs)
}

func headsToAdopt(ctx context.Context, u *compose.Setup, s store.Store, refs []string) ([]cas.Head, error) {
	if len(refs) == 0 {
		return s.Newest(ctx)
	}
	e := u.Engine(s, nil)
	var out []cas.Head
	for _, ref := range refs {
		at, err := Resolve(ctx, u, s, ref)
		if err == nil {
			err = at.MustBeRun(ref)
		}
		if err != nil {
			return nil, err
		}
		children, err := e.Descendants(ctx, at.Run)
		if err != nil {
			return nil, err
		}
		for _, run := range append([]protocol.RunID{at.Run}, children...) {
			h, err := s.Head(ctx, protocol.RunHead(run))
			if err != nil {
				return nil, err
			}
			out = append(out, h)
		}
	}
	return out, nil
}

// adoptable is nil for a run that is the user's own.
func adoptable(ctx context.Context, u *compose.Setup, s store.Store, run protocol.RunID) (*api.Adoptable, error) {
	why := u.Pins(s).Own(ctx, run)
	switch {
	case why == nil:
		return nil, nil
	case !errors.Is(why, protocol.ErrForeign) && !errors.Is(why, protocol.ErrRolledBack):
		return nil, why
	}
	st, err := u.Engine(s, nil).State(ctx, run)
	if err != nil {
		return nil, err
	}
	x := &api.Adoptable{ID: run, Workflow: st.Program().Workflow.Name, Status: st.Status(), Why: protocol.CodeOf(why), Runs: compose.Acts(st.Program())}
	if p := st.Info.Parent; p != nil {
		x.Parent = new(string(p.Run) + ":" + p.Step)
	}
	return x, nil
}
