package protocol

import (
	"context"
	"iter"
)

// Source reads the journals of runs.
//
// After yields the events with seq > from, in order and without a hole, and then stops; it
// never yields part of a commit. An unknown run yields an error wrapping ErrUnknownRun, a
// from beyond the head one wrapping ErrFutureCursor, a hole or a block that does not match
// its CID one wrapping ErrCorrupt. No transaction is open while the consumer works.
type Source interface {
	After(ctx context.Context, run RunID, from Seq) iter.Seq2[Entry, error]
}

// Blocks reads immutable blocks. Block returns a copy with its hash checked; a missing block
// is an error wrapping ErrNotFound, a damaged one an error wrapping ErrCorrupt.
type Blocks interface {
	Block(ctx context.Context, l Link) ([]byte, error)
}

// Feed is what a live reader needs of a store: journals, blocks, and the notice that something
// moved. A follower reads the counter first, then the journals, then waits for another
// counter: so it misses nothing.
type Feed interface {
	Source
	Blocks

	// Tip is the newest event of a run: its name and its seq. An unknown run is an error
	// wrapping ErrUnknownRun.
	Tip(ctx context.Context, run RunID) (Link, Seq, error)
	// Changes is a counter that grows with every commit, of any process.
	Changes(ctx context.Context) (uint64, error)
	// AwaitChange returns the counter as soon as it is not since, or ctx's error.
	AwaitChange(ctx context.Context, since uint64) (uint64, error)
}

// LiveDelta is a piece of output on its way to the watchers of a run: lossy, never stored,
// never a cursor.
type LiveDelta struct {
	Run   RunID
	After Seq    // the newest event when it was said
	Step  string // that it is output of
	N     int64  // counts the deltas of a step, so that a reader sees what it missed
	Delta Delta
}

// Deltas hands out the live output of runs. Subscribe sends the deltas of one run to send
// until stop is called; send must not block.
type Deltas interface {
	Subscribe(run RunID, send func(LiveDelta)) (stop func())
}
