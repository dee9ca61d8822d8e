package queue

import (
	"context"

	"wf/protocol"
)

// A Pointer says which worker has a run.
type Pointer struct {
	Run    protocol.RunID `json:"run"`
	Worker string         `json:"agent"`
	// Epoch of the lease by which the worker got the run, 0 for a run of its own.
	Epoch uint64 `json:"epoch"`
	// Seq and Head are how far the run was when it was last heard of: a hint, which may be
	// older after a restart.
	Seq  protocol.Seq `json:"seq"`
	Head string       `json:"head"` // CID
	// Revision is 0 for a pointer that does not exist yet.
	Revision uint64 `json:"revision"`
}

// Pointers keeps one pointer per run.
type Pointers interface {
	// Get reads what the last Swap wrote, never something older. A run without a pointer is an
	// error wrapping protocol.ErrUnknownRun.
	Get(ctx context.Context, run protocol.RunID) (Pointer, error)
	// Swap writes p if the pointer still has p.Revision, and returns it with the new one; else
	// the error wraps ErrSwapped. A pointer that got another worker or epoch is durable then; a
	// new one without an epoch, and how far a run is, soon: its worker says it again.
	Swap(ctx context.Context, p Pointer) (Pointer, error)
}
