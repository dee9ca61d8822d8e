package store

import (
	"context"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// A Store is a store of runs of either kind, as commands and daemons use it.
type Store interface {
	engine.Store
	cas.Keeper

	// LockSink makes this process the only one that delivers to a sink; see notify.Store.
	LockSink(ctx context.Context, name string) (unlock func() error, ok bool, err error)
	// Find lists the stored blocks whose CID goes on with a text; see cas.Store.Find.
	Find(ctx context.Context, part string) ([]protocol.Link, error)
	// Size measures the store.
	Size(ctx context.Context) (cas.Size, error)
	// Uncollected are the runs that were deleted and whose newest event is still stored.
	Uncollected(ctx context.Context) (int, error)
	// Observe has f called with how long commits take; see cas.Observer.
	Observe(f cas.Observer)
	// Name is that by which another process opens the store. It holds no secret.
	Name() string
	// Beside is the directory of this machine for what belongs to the store and is not in it: sockets of
	// runs, pages of tasks, vectors of memories. It may not exist yet.
	Beside() string
	// Close ends the use of the store.
	Close() error
}

var _ Store = (*cas.Store)(nil)
