package roles

import (
	"context"
	"io"
	"sync"
)

// A Handover brings what a Preparer opened for a visit to the Perform of its first attempt, so that it is not opened twice:
//
//	Prepare ──Put──► Handover ──Take──► Perform
//	                     └──Close──► closed, where no Perform took it
//
// The zero Handover is ready, and safe for concurrent use.
type Handover struct {
	mu     sync.Mutex
	open   io.Closer
	closed bool
}

// Put gives what is open, once. It reports false where nobody will take it, and then the caller closes it.
func (h *Handover) Put(c io.Closer) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.open = c
	return true
}

// Take gives what was put, which the caller then closes; nil is nothing.
func (h *Handover) Take() io.Closer {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.open
	h.open = nil
	return c
}

// Close closes what nobody took, and has Put refuse more.
func (h *Handover) Close() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	if c := h.Take(); c != nil {
		return c.Close()
	}
	return nil
}

type handoverKey struct{}

// HandingOver has the Preparer and the Performer that are called with it hand over by h. The caller closes it.
func HandingOver(ctx context.Context, h *Handover) context.Context {
	return context.WithValue(ctx, handoverKey{}, h)
}

// HandoverOf is the Handover of HandingOver; nil, which takes and gives nothing, for none.
func HandoverOf(ctx context.Context) *Handover {
	h, _ := ctx.Value(handoverKey{}).(*Handover)
	return h
}
