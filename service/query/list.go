package query

import (
	"cmp"
	"context"
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
	heads, err := e.Store.Newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	l, err := Listing{Query: q, Heads: heads}.Read(ctx, e)
	return l.Rows, l.Unread, err
}

// A Listing is a list of runs that is to be read.
type Listing struct {
	api.Query
	Heads []cas.Head                // as Newest of a store gives them
	Known Known                     // of their facts; nil is none
	Said  func(protocol.RunID) bool // reports whether a run has the words and the person that are looked for; nil is that all do
}

// Listed is a list of runs.
type Listed struct {
	Rows   []api.Row
	Unread []error                    // why runs are not listed
	Counts map[protocol.RunStatus]int // nil unless asked for
}

// Read reads a list. What it costs grows with the runs that are shown and those whose facts are not known.
func (l Listing) Read(ctx context.Context, e *engine.Engine) (out Listed, err error) {
	l.Text = strings.ToLower(l.Text)
	interrupted := l.Status == api.InterruptedRuns
	if interrupted {
		l.Status = protocol.Running
	}
	heads := within(l.Heads, l.Since, l.Until)
	out.Rows = []api.Row{}
	counts := l.Counts && l.Before == ""
	if counts {
		out.Counts = map[protocol.RunStatus]int{}
	}
	if l.Before != "" {
		if heads, err = behind(heads, l.Before); err != nil {
			return Listed{}, err
		}
	}
	full := func() bool { return l.Limit > 0 && len(out.Rows) == l.Limit }
	for _, h := range heads {
		if full() && !counts {
			break
		}
		run := protocol.RunOf(h.Name)
		if l.Said != nil && !l.Said(run) {
			continue
		}
		var f *Facts
		var st *rules.State
		if l.Known != nil {
			f = l.Known.Facts(h)
		}
		if f == nil {
			if st, err = read(ctx, e, run, &out.Unread); err != nil {
				return Listed{}, err
			}
			if st == nil {
				continue
			}
			if f = FactsOf(st); l.Known != nil && st.Seq == h.Seq {
				l.Known.Note(h, f)
			}
		}
		if !f.fit(e, &l.Query, run) {
			continue
		}
		if counts {
			out.Counts[f.Status]++
		}
		if l.Status != "" && f.Status != l.Status || full() {
			continue
		}
		if st == nil {
			if st, err = read(ctx, e, run, &out.Unread); err != nil {
				return Listed{}, err
			}
			if st == nil || l.Status != "" && st.Status() != l.Status { // it has moved
				continue
			}
		}
		if row := rowFor(ctx, e, h, st); !interrupted || row.Idle == api.Interrupted {
			out.Rows = append(out.Rows, row)
		}
	}
	return out, nil
}

// read is the state of a run; nil where it is unread.
func read(ctx context.Context, e *engine.Engine, run protocol.RunID, unread *[]error) (*rules.State, error) {
	st, err := e.State(ctx, run)
	switch {
	case ctx.Err() != nil, protocol.OfStore(err):
		return nil, err
	case err != nil:
		*unread = append(*unread, err)
		return nil, nil
	}
	return st, nil
}

// rowFor is the row of a run with what lies outside of its state.
func rowFor(ctx context.Context, e *engine.Engine, h cas.Head, st *rules.State) api.Row {
	row := rowOf(h, st)
	row.Driving = e.Driving(ctx, row.ID, st)
	row.Queue = e.QueueOf(ctx, row.ID, st)
	row.Foreign = e.Foreign(ctx, h, st)
	if cost, _ := e.Cost(st.Totals); cost != nil {
		row.CostUSD = new(usd(*cost))
	}
	return row
}

// within are the heads that moved last in a span of time.
func within(heads []cas.Head, since, until int64) []cas.Head {
	if until > 0 {
		i, _ := slices.BinarySearchFunc(heads, until, func(h cas.Head, ts int64) int { return cmp.Or(cmp.Compare(ts, h.TS), 1) })
		heads = heads[i:]
	}
	if since > 0 {
		i, _ := slices.BinarySearchFunc(heads, since, func(h cas.Head, ts int64) int {
			if h.TS >= ts {
				return -1
			}
			return 1
		})
		heads = heads[:i]
	}
	return heads
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
	i, here := slices.BinarySearchFunc(heads, last, cas.NewerFirst)
	if here {
		i++
	}
	return heads[i:], nil
}

func rowOf(h cas.Head, st *rules.State) api.Row {
	row := api.Row{
		ID: protocol.RunOf(h.Name), Workflow: st.Program().Workflow.Name, Title: st.Info.Title,
		Status: st.Status(), Reason: st.Reason(), Steps: st.Totals.Steps,
		Started: Stamp(st.Info.Started), Updated: Stamp(h.TS), Spent: api.SpentOf(st.Status(), st.Info.Started, h.TS, st.Totals.Active),
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
