package service

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/query"
	"wf/service/words"
)

// How long a search waits for what was said since runs were indexed last. The answer says how much is left: api.Searched.
const searchWait = 500 * time.Millisecond

// index is made with its first use.
type index struct {
	once sync.Once
	*words.Index
}

// indexed is the index of the store.
func (l *Local) indexed() *words.Index {
	l.index.once.Do(func() { l.index.Index = words.New(l.Store, l.Engine, l.Seal) })
	return l.index.Index
}

// List lists runs, with one more than asked for to see whether there are others.
func (l *Local) List(ctx context.Context, q api.Query) (*api.Page, error) {
	heads, err := l.Store.Newest(ctx)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit > 0 {
		q.Limit++
	}
	x := l.indexed()
	x.Refresh(ctx)
	p := &api.Page{Schema: "wf.runs/v1"}
	list := query.Listing{Query: q, Heads: heads, Known: x}
	said, err := l.said(ctx, heads, q, &list, p)
	if err != nil {
		return nil, err
	}
	got, err := list.Read(ctx, l.Engine)
	if err != nil {
		return nil, err
	}
	p.Items, p.Counts = got.Rows, got.Counts
	for _, err := range got.Unread {
		p.Unread = append(p.Unread, protocol.Flat(err))
	}
	if limit > 0 && len(p.Items) > limit {
		p.Items = p.Items[:limit]
		last := p.Items[limit-1]
		p.Next = new(api.RowPlace(string(last.Updated), last.ID))
	}
	for i := range p.Items {
		l.drives(p.Items[i].ID, p.Items[i].Status, &p.Items[i].Driving)
	}
	if said != nil {
		err = showHits(ctx, said, p.Items)
	}
	return p, err
}

// said looks for what was said in runs, where that is asked for, and says on the page how far they are searched.
func (l *Local) said(ctx context.Context, heads []cas.Head, q api.Query, list *query.Listing, p *api.Page) (found *words.Found, err error) {
	if q.Search == "" && q.Person == "" {
		return nil, nil
	}
	var terms []api.Wanted
	if q.Search != "" {
		if terms, err = api.ReadSearch(q.Search); err != nil {
			return nil, err
		}
	}
	x := l.indexed()
	if err := x.CatchUp(ctx, heads, words.CatchUpOptions{Within: searchWait}); err != nil {
		return nil, err
	}
	if found, err = x.Find(ctx, terms, q.Person); err != nil {
		return nil, err
	}
	searched, failed := found.Searched(heads)
	p.Searched = &searched
	for _, err := range failed {
		p.Unread = append(p.Unread, protocol.Flat(err))
	}
	list.Said = found.Has
	return found, nil
}

// showHits adds excerpts to rows.
func showHits(ctx context.Context, found *words.Found, rows []api.Row) error {
	runs := make([]protocol.RunID, len(rows))
	for i, r := range rows {
		runs[i] = r.ID
	}
	hits, err := found.HitsOf(ctx, runs)
	for i := range rows {
		rows[i].Hits = hits[i]
	}
	return err
}

// IndexAll indexes all that was said. progress, if it is not nil, is called with how many of the runs that were behind are done.
func (l *Local) IndexAll(ctx context.Context, progress func(done, of int)) error {
	heads, err := l.Store.Newest(ctx)
	if err == nil {
		err = l.indexed().CatchUp(ctx, heads, words.CatchUpOptions{Progress: progress})
	}
	return err
}

// How often a daemon indexes what was said, and which part of the time it takes at most. It looks again after an error.
const (
	indexEvery = 2 * time.Second
	indexPart  = 20
	indexAgain = 30 * time.Second
)

// KeepIndexed indexes what is said as it is committed, until ctx ends. tell is called with the runs that cannot be read, and without a run with what
// hinders it.
func (l *Local) KeepIndexed(ctx context.Context, tell func(protocol.RunID, error)) {
	for ctx.Err() == nil {
		if l.indexed().Shared() { // of the processes that see a change one is first, and the others find it indexed
			select {
			case <-time.After(rand.N(indexEvery)):
			case <-ctx.Done():
				return
			}
		}
		began := time.Now()
		changes, err := l.Store.Changes(ctx)
		var heads []cas.Head
		if err == nil {
			heads, err = l.Store.Newest(ctx)
		}
		if err == nil {
			err = l.indexed().CatchUp(ctx, heads, words.CatchUpOptions{Tell: tell})
		}
		wait := max(indexEvery, indexPart*time.Since(began))
		if err != nil && ctx.Err() == nil {
			tell("", err)
			wait = indexAgain
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if err == nil {
			if _, err = l.Store.AwaitChange(ctx, changes); err != nil && ctx.Err() == nil {
				tell("", err)
			}
		}
	}
}

// purgeTime is how long a deletion waits for another process that writes to the index.
const purgeTime = 10 * time.Second

// purge drops what is indexed of runs that were deleted.
func (l *Local) purge(ctx context.Context, runs []protocol.RunID) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), purgeTime)
	defer stop()
	err := l.indexed().Purge(ctx, runs)
	if err == nil {
		return nil
	}
	others := ""
	if n := len(runs) - 1; n > 0 {
		others = " and of " + protocol.Plural(n, "other deleted run")
	}
	return protocol.ErrBusy.With("wf serve, or the next wf ls --search, drops them", "run %s is deleted, and the index for searches still has words of it%s: %v", runs[0], others, err)
}
