package engine

import (
	"context"

	"wf/cas"
	"wf/protocol"
)

// Store is what the engine asks of a store of runs: *cas.Store is one in a directory. All of it is safe
// for concurrent use.
type Store interface {
	protocol.Feed
	Ledger
	Claims
	Kin

	// MayGoOn is nil where runs may go on, else an error wrapping protocol.ErrHeld.
	MayGoOn(ctx context.Context) error
	// IDLength is how many characters the ids of new runs have: enough for two never to be drawn that are the same.
	IDLength() int
	// Dir names the store for people, and tells it from others: of one in a directory its path.
	Dir() string
}

// Ledger is the heads of a store, and the one way in which they move.
type Ledger interface {
	cas.Lists
	// Journal opens the journal of a run at its head; a run that does not exist yet begins with
	// its first Append.
	Journal(ctx context.Context, run protocol.RunID) (*cas.Journal, error)
	// Commit makes a batch durable, all of it or nothing; when it returns nil it is. An error wraps
	// protocol.ErrHeadMoved where a head is not at its Old, ErrRunDeleted for a run that was deleted, ErrFenced where the
	// claim of the batch was taken over.
	Commit(ctx context.Context, b cas.Batch) error
}

// Claims say which process drives a run.
type Claims interface {
	// Claim makes this process the only driver of a run until the claim is released or lost; protocol.ErrRunLive where there
	// is another. In a database it is a claim on the tree of runs that the run is a part of, which one process has for all
	// that it drives of it.
	Claim(ctx context.Context, run protocol.RunID) (cas.Claim, error)
	// Driven reports whether a process drives a run, be it this one, and hinders none.
	Driven(ctx context.Context, run protocol.RunID) (bool, error)
	// Undriven is nil where no process drives a run, else the error of Claim.
	Undriven(ctx context.Context, run protocol.RunID) error
	// DropLock removes what is left of the claim that this process has on a run that was deleted.
	DropLock(ctx context.Context, run protocol.RunID) error
}

// Kin is what ties runs to one another, and to what a collection would remove.
type Kin interface {
	// Base is the run that a fork shares its first events with, and the last event that they share; "" for none.
	Base(ctx context.Context, run protocol.RunID) (base protocol.RunID, shared protocol.Seq, err error)
	// Forks are the runs that share events of a run, by id.
	Forks(ctx context.Context, run protocol.RunID) ([]cas.Sharer, error)
	// Reach is how many bytes the blocks have that event seq of a run leads to, each counted once.
	Reach(ctx context.Context, run protocol.RunID, seq protocol.Seq) (int64, error)
	// Hold keeps collections away until release is called.
	Hold(ctx context.Context) (release func(), err error)
}

var _ Store = (*cas.Store)(nil)
