package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// Runs lists the runs that fit, newest first. A run that cannot be read, since it is damaged or of
// a newer wf, hides no other: it is among unread.
func Runs(ctx context.Context, e *engine.Engine, q api.Query) (out []api.Row, unread []error, err error) {
	s := e.Store
	q.Text = strings.ToLower(q.Text)
	heads, err := Newest(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	out = []api.Row{}
	if q.Before != "" {
		if heads, err = behind(heads, q.Before); err != nil {
			return nil, nil, err
		}
	}
	for _, h := range heads {
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
		st, err := e.State(ctx, protocol.RunOf(h.Name))
		switch {
		case ctx.Err() != nil, errors.Is(err, protocol.ErrBusy), errors.Is(err, protocol.ErrStore):
			return nil, nil, err
		case err != nil:
			unread = append(unread, err)
			continue
		}
		if fits(q, st) && holds(q, protocol.RunOf(h.Name), st) {
			row := rowOf(h, st)
			row.Driving = e.Driving(ctx, row.ID, st)
			row.Queue = e.QueueOf(ctx, row.ID, st)
			row.Foreign = e.Foreign(ctx, h, st)
			if cost, _ := e.Cost(st.Totals); cost != nil {
				row.CostUSD = new(float64(*cost) / 1e12)
			}
			out = append(out, row)
		}
	}
	return out, unread, nil
}

// behind are the heads behind a place of the list. The name of a run stands for the place where it is now.
func behind(heads []cas.Head, place string) ([]cas.Head, error) {
	updated, run, ok := api.ReadRowPlace(place)
	at, err := time.Parse(time.RFC3339Nano, updated)
	if !ok || err != nil {
		i := slices.IndexFunc(heads, func(h cas.Head) bool { return protocol.RunOf(h.Name) == protocol.RunID(place) })
		if i < 0 {
			return nil, protocol.ErrBadRequest.With("take next of an earlier page", "before=%.300q is neither the next of a page nor a run", place)
		}
		return heads[i+1:], nil
	}
	last := cas.Head{Name: protocol.RunHead(run), TS: at.UnixMicro()}
	i, here := slices.BinarySearchFunc(heads, last, inOrder)
	if here {
		i++
	}
	return heads[i:], nil
}

func fits(q api.Query, st *rules.State) bool {
	return (q.Tag == "" || slices.Contains(st.Info.Tags, q.Tag)) && (q.Status == "" || st.Status() == q.Status) &&
		(q.Workflow == "" || st.Program().Workflow.Name == q.Workflow) &&
		(q.All || st.Info.Parent == nil)
}

// found reports whether the text that is looked for stands in what a run says of itself. A
// description over 1 KiB lies in a block and is not searched.
func holds(q api.Query, run protocol.RunID, st *rules.State) bool {
	if q.Text == "" || strings.HasPrefix(strings.ToLower(string(run)), q.Text) {
		return true
	}
	for _, s := range append([]string{st.Program().Workflow.Name, st.Info.Title, st.Info.Description.S, st.Info.RequestID}, st.Info.Tags...) {
		if strings.Contains(strings.ToLower(s), q.Text) {
			return true
		}
	}
	return false
}

func rowOf(h cas.Head, st *rules.State) api.Row {
	row := api.Row{
		ID: protocol.RunOf(h.Name), Workflow: st.Program().Workflow.Name, Title: st.Info.Title,
		Status: st.Status(), Reason: st.Reason(), Steps: st.Totals.Steps,
		Started: Stamp(st.Info.Started), Updated: Stamp(h.TS), ActiveMS: st.Totals.Active / 1000,
		Usage: api.RowUsage{Calls: st.Totals.Calls, Input: st.Totals.Input, Cached: st.Totals.Cached, Output: st.Totals.Output},
		Head:  h.Link.String(), Seq: h.Seq, Tags: append([]string{}, st.Info.Tags...), RequestID: st.Info.RequestID, Waiting: []api.Waiting{},
	}
	if st.Closes() {
		row.Closing = st.Closing.Status
	}
	if p := st.Info.Parent; p != nil {
		row.Parent = new(string(p.Run) + ":" + p.Step)
	}
	for _, w := range st.Waiting() {
		x := engine.WaitingOf(w)
		x.Choices = append([]protocol.Choice{}, w.Choices...)
		row.Waiting = append(row.Waiting, x)
	}
	return row
}

// Newest lists the heads of all runs, the one that moved last first.
func Newest(ctx context.Context, s engine.Store) ([]cas.Head, error) {
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	slices.SortFunc(heads, inOrder)
	return heads, err
}

// inOrder is the order of a list of runs; api.RowPlace is a place in it.
func inOrder(a, b cas.Head) int {
	return cmp.Or(cmp.Compare(b.TS, a.TS), cmp.Compare(a.Name, b.Name))
}

// Started reads the first event of a run.
func Started(ctx context.Context, s engine.Store, run protocol.RunID) (protocol.RunStarted, error) {
	for e, err := range s.After(ctx, run, 0) {
		var d protocol.RunStarted
		if err == nil {
			err = cas.Decode(e.Data, &d)
		}
		if err != nil {
			return d, fmt.Errorf("first event of run %s: %w", run, err)
		}
		return d, nil
	}
	return protocol.RunStarted{}, fmt.Errorf("run %s has no events: %w", run, protocol.ErrCorrupt)
}

// Stamp is a time in unix µs as it is shown, RFC 3339 in UTC.
func Stamp(us int64) string { return string(protocol.AppendTime(nil, us)) }
