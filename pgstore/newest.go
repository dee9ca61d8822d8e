package pgstore

import (
	"context"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// newest are the heads of runs as they were given last. One caller at a time brings them up to date.
type newest struct {
	turn  chan struct{}
	moved func(ctx context.Context) (names []string, known bool, err error)
	known bool // what moved since is all that differs

	list []cas.Head // is never changed
	at   map[string]cas.Head
}

// Newest lists the heads of all runs, the one that moved last first; see cas.Lists.
func (s *Store) Newest(ctx context.Context) ([]cas.Head, error) {
	n := &s.newest
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-n.turn }()
	if n.moved == nil {
		n.moved = s.Moved()
	}
	names, known, err := n.moved(ctx)
	if err != nil {
		return nil, err
	}
	n.known, known = false, known && n.known // until it is as it is now
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, protocol.RunHead("")) })
	var fresh, gone []cas.Head
	switch {
	case !known:
		fresh, err = s.Heads(ctx, protocol.RunHead(""))
		n.list, n.at = nil, make(map[string]cas.Head, len(fresh))
	case len(names) > 0:
		fresh, err = s.heads(ctx, `name = any($1)`, texts(names))
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if h, there := n.at[name]; there {
			gone = append(gone, h)
			delete(n.at, name)
		}
	}
	for _, h := range fresh {
		n.at[h.Name] = h
	}
	n.list, n.known = cas.Rearrange(n.list, gone, fresh), true
	return slices.Clone(n.list), nil
}
