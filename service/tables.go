package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/query"
)

// Tables lists what sweeps and evals of this user have come to.
func (l *Local) Tables(ctx context.Context, p api.Part) (*api.TableList, error) {
	all, err := cas.Tables(ctx, l.Store)
	if err != nil {
		return nil, err
	}
	place := func(t cas.StoredTable) string { return fmt.Sprintf("%d.%s", t.At, t.ID) }
	if p.After != "" { // the table may have changed meanwhile: what lies behind its place is listed
		var at int64
		var id protocol.RunID
		if _, err := fmt.Sscanf(p.After, "%d.%s", &at, &id); err != nil {
			return nil, protocol.ErrUsage.With("give the next of an earlier answer", "%.100q is no place in the list of tables", p.After)
		}
		all = slices.DeleteFunc(all, func(t cas.StoredTable) bool { return t.At > at || t.At == at && t.ID <= id })
	}
	out, bytes := &api.TableList{Schema: "wf.tables/v1", Items: []api.TableHead{}}, 0
	for i, t := range all {
		if p.Full(i, bytes, len(t.Head)) {
			out.Next = place(all[i-1])
			break
		}
		head, err := l.tableHead(ctx, t)
		if err != nil {
			return nil, err
		}
		out.Items, bytes = append(out.Items, head), bytes+len(t.Head)
	}
	return out, nil
}

// Table is what a sweep or an eval of this user has come to.
func (l *Local) Table(ctx context.Context, id protocol.RunID) (*api.Table, error) {
	t, ok, err := cas.Table(ctx, l.Store, id)
	if err == nil && !ok {
		err = protocol.ErrNotFound.With("the page lists those that are there; of one that is gone, the runs have its id as a tag", "there is no table %.40q", id)
	}
	if err != nil {
		return nil, err
	}
	var out api.Table
	if err := json.Unmarshal(t.Data, &out); err != nil {
		return nil, fmt.Errorf("table %s: %w: %w", id, err, protocol.ErrCorrupt)
	}
	out.TableHead, err = l.tableHead(ctx, t)
	return &out, err
}

// tableHead reads what a list shows of a table.
func (l *Local) tableHead(ctx context.Context, t cas.StoredTable) (h api.TableHead, err error) {
	if err := json.Unmarshal(t.Head, &h); err != nil {
		return h, fmt.Errorf("table %s: %w: %w", t.ID, err, protocol.ErrCorrupt)
	}
	h.ID, h.Changed = t.ID, api.Time(query.Stamp(t.At))
	if !h.Complete {
		h.Live, err = l.Store.Driven(ctx, t.ID)
	}
	return h, err
}

// tableEvery is how often a table that changes is stored at most.
const tableEvery = time.Second

// A Filling keeps a table in the store while it changes, so that screens can follow it.
type Filling struct {
	l     *Local
	id    protocol.RunID
	ctx   context.Context // of writing: not cancelled with the command, which has things to tell at its end
	claim cas.Claim

	mu   sync.Mutex
	next *api.Table // what is to be stored, or nil

	wake  chan struct{} // has one when next was set
	end   chan struct{} // closed by Close
	ended chan error    // what the last writing came to
}

// TableID names a table by the arguments of what fills it: the same command fills the same table.
func TableID(kind api.TableKind, name string) protocol.RunID {
	return engine.RequestRun("table/" + string(kind) + "/" + name)
}

// FillTable begins to keep the table of an id. One that another process fills is an error wrapping protocol.ErrBusy.
func (l *Local) FillTable(ctx context.Context, id protocol.RunID) (*Filling, error) {
	claim, err := l.Store.Claim(ctx, id)
	if errors.Is(err, protocol.ErrRunLive) {
		err = protocol.ErrBusy.With(protocol.ErrBusy.Hint, "another process is at work with the same arguments")
	}
	if err != nil {
		return nil, err
	}
	f := &Filling{l: l, id: id, ctx: context.WithoutCancel(ctx), claim: claim, wake: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan error, 1)}
	go f.write()
	return f, nil
}

// Put has a table stored soon, in place of what it was before. It keeps t, which is not changed any more.
func (f *Filling) Put(t *api.Table) {
	f.mu.Lock()
	f.next = t
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Close returns when the last table is stored.
func (f *Filling) Close() error {
	close(f.end)
	return errors.Join(<-f.ended, f.claim.Release(f.ctx))
}

// write stores tables until Close, at most one in tableEvery, and the last one.
func (f *Filling) write() {
	var err error
	for open := true; open; {
		select {
		case <-f.wake:
			err = f.store()
		case <-f.end:
		}
		select {
		case <-time.After(tableEvery):
		case <-f.end:
			open = false
		}
	}
	f.ended <- errors.Join(err, f.store())
}

// store stores the table that is to be.
func (f *Filling) store() error {
	f.mu.Lock()
	t := f.next
	f.next = nil
	f.mu.Unlock()
	if t == nil {
		return nil
	}
	t.Schema, t.ID = "wf.table/v1", f.id
	head, err := json.Marshal(t.TableHead)
	if err != nil {
		return err
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return f.l.Store.Commit(f.ctx, cas.Batch{Derived: cas.PutTable(cas.StoredTable{ID: f.id, At: time.Now().UnixMicro(), Head: head, Data: data})})
}
