package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// An ownLooker finds the visits with copies of the workspace for themselves, and the merges of those.
type ownLooker struct {
	roles map[string]bool // that may have such visits
	at    map[string]int  // of visits, in Looks.Own
	first map[string]protocol.Seq
	ends  []ending
}

// An ending is that of a visit of such a role.
type ending struct {
	step   string
	entry  *protocol.Entry
	record protocol.Link
}

// may reports whether a visit may have had an own copy, or merged some. In a fork with another definition that can be any behind the first
// copy.
func (w *ownLooker) may(id protocol.StepID) bool { return len(w.at) > 0 || w.roles[id.Role] }

// visit is the entry of a visit of which an event tells.
func (w *ownLooker) visit(out *api.Looks, x *protocol.Entry, step string) *api.OwnVisit {
	i, known := w.at[step]
	if !known {
		i = len(out.Own)
		w.at[step], w.first[step] = i, x.Seq
		out.Own = append(out.Own, api.OwnVisit{Step: step})
	}
	v := &out.Own[i]
	v.Seq, v.Time = x.Seq, Stamp(x.TS)
	return v
}

// ended notes the record of a visit that may have had an own copy.
func (w *ownLooker) ended(x *protocol.Entry, step string) error {
	d, err := cas.DecodeData[protocol.StepCompleted](&x.Event)
	if err == nil && d.Record.Defined() {
		w.ends = append(w.ends, ending{step, &protocol.Entry{Event: protocol.Event{Seq: x.Seq, TS: x.TS}}, d.Record})
	}
	return err
}

// visits reads what the records tell.
func (w *ownLooker) visits(ctx context.Context, e *engine.Engine, out *api.Looks) error {
	names := map[protocol.Link]string{}
	for _, x := range w.ends {
		names[x.record] = x.step
	}
	for _, x := range w.ends {
		var rec protocol.StepRecord
		data, err := e.Store.Block(ctx, x.record)
		if err == nil {
			err = cas.Decode(data, &rec)
		}
		var own *engine.OwnVisit
		if err == nil {
			own, err = e.OwnVisit(ctx, &rec)
		}
		if err != nil {
			return fmt.Errorf("%s of run %s: %w", x.step, out.Run, err)
		}
		if own == nil {
			continue
		}
		v := w.visit(out, x.entry, x.step)
		v.Base, v.Tree = own.Base.String(), own.Tree.String()
		if own.From.Defined() {
			v.Found, v.From = own.Found.String(), names[own.From]
		}
		for _, l := range own.Merged {
			v.Merged = append(v.Merged, names[l])
		}
	}
	slices.SortStableFunc(out.Own, func(a, b api.OwnVisit) int { return cmp.Compare(w.first[a.Step], w.first[b.Step]) })
	return nil
}
