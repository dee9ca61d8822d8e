package cas

import (
	"context"
	"iter"

	"wf/protocol"
)

// Backing is what a store does for its journals and chains. *Store is one; a store that keeps the same
// records elsewhere is another, and gets Journal and Chain by it.
type Backing interface {
	// Head reads a head; one that does not exist is the zero Head and no error.
	Head(ctx context.Context, name string) (Head, error)
	// Events yields the events with seq > from of the journal under a head, in order, each hashed
	// and joined to the one before; what names the journal in messages. Its errors are those of protocol.Source.
	Events(ctx context.Context, head, what string, from protocol.Seq) iter.Seq2[protocol.Entry, error]
	// Ready checks the blocks of a batch and makes them ready to be written, in the goroutine of
	// the caller. commit then is Commit for a batch of exactly these blocks, and is called once.
	Ready(blocks []Block) (commit func(ctx context.Context, b Batch) error, err error)
}

var _ Backing = (*Store)(nil)
