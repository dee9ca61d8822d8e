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
