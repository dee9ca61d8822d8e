package cas

import (
	"context"

	"wf/protocol"
)

// Keeper is a store of runs of any kind, as Export, Import and Copy use it: in a directory, in a database. Of one that has the
// method Hold of *Store collections are kept away while blocks are stored that nothing leads to yet.
type Keeper interface {
	Backing
	protocol.Blocks
	// Tip is the newest event of a run; an error wraps protocol.ErrUnknownRun or ErrRunDeleted.
	Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error)
	// Heads lists the heads with names that begin with prefix, by name.
	Heads(ctx context.Context, prefix string) ([]Head, error)
	// Base is the run that a fork shares its first events with, and the last event that they share; "" for none.
	Base(ctx context.Context, run protocol.RunID) (base protocol.RunID, shared protocol.Seq, err error)
	// SetBases notes what forks share with runs that came later; see Store.SetBases.
	SetBases(ctx context.Context, all []Kinship) error
	// DerivedKeys lists the keys of derived values that begin with prefix, sorted.
	DerivedKeys(ctx context.Context, prefix string) ([]string, error)
	// Commit makes a batch durable, all of it or nothing; see Store.Commit.
	Commit(ctx context.Context, b Batch) error
	// Lacks gives those of the blocks that are not there. The others stay for a day at least, whatever leads to them, or for as long as Hold
	// keeps collections away.
	Lacks(ctx context.Context, links []protocol.Link) ([]protocol.Link, error)
	// Dir names the store for people, and tells it from others.
	Dir() string
}

var _ Keeper = (*Store)(nil)

// hold keeps collections of a store away until release is called, where the store can do that.
func hold(ctx context.Context, s Keeper) (release func(), err error) {
	if h, ok := s.(interface {
		Hold(ctx context.Context) (release func(), err error)
	}); ok {
		return h.Hold(ctx)
	}
	return func() {}, nil
}
