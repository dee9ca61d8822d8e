package cas

import (
	"context"
	"errors"

	"wf/protocol"
)

// A Claim is that one process alone drives a run, or does something else that only one may do. A store in a directory
// gives it by a lock, which the end of the process releases; a store in a database by a row, which another process takes
// over once this one was not heard of for a while.
type Claim interface {
	// Fence is what batches that are written under the claim carry; the zero Fence where a store needs none.
	Fence() Fence
	// Acting gives a context within ctx for what acts outside of the store, a command above all. It ends, with the cause
	// ErrAged, before another process can take the claim over and do the same again. Where that is near already, Acting
	// first waits until it is not. An error is the cause of ctx, or wraps protocol.ErrFenced: another process has taken
	// the claim over. end is called when nothing acts any more.
	Acting(ctx context.Context) (acting context.Context, end context.CancelFunc, err error)
	// Release gives the claim up. It is safe to call more than once.
	Release(ctx context.Context) error
}

// ErrAged is the cause with which what acts under a claim ends: the store was not reached for so long that another process
// may soon go on in the place of this one.
var ErrAged = errors.New("the store was not reached for so long that another process may soon go on with the run")

// A Fence is a claim on a tree of runs, as batches that are written under it carry it: a store that gives
// claims takes the batch only while the claim is the last one on Root, else the error wraps
// protocol.ErrFenced and nothing is stored. Tokens are random, and compared for equality alone.
type Fence struct {
	Root  protocol.RunID
	Token [16]byte
}

// lockClaim is a claim by a lock.
type lockClaim struct{ free func() error }

func (lockClaim) Fence() Fence { return Fence{} }

func (lockClaim) Acting(ctx context.Context) (context.Context, context.CancelFunc, error) {
	return ctx, func() {}, nil
}

func (c lockClaim) Release(context.Context) error { return c.free() }
