package engine

import (
	"context"
	"sync"

	"wf/protocol"
	"wf/roles"
)

// heard is what the events of a performance tell of its result.
type heard struct {
	mu      sync.Mutex
	why     string // it is not kept for others
	opening int64  // tokens of the first request, 0 for not known
	counted bool
}

// through listens to what is emitted. ear may be nil.
func (h *heard) through(emit roles.Emit, ear roles.Ear) roles.Emit {
	return func(ctx context.Context, data ...protocol.Data) error {
		h.hear(ear, data)
		return emit(ctx, data...)
	}
}

func (h *heard) hear(ear roles.Ear, data []protocol.Data) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range data {
		if _, live := d.(protocol.Delta); live {
			continue
		}
		if u, ok := d.(protocol.Usage); ok && !h.counted && u.Kind == protocol.UsageTurn && u.Input != nil {
			h.opening, h.counted = *u.Input, true // as rules.State measures it
		}
		if ear == nil {
			continue
		}
		if why := ear.Hear(d); h.why == "" {
			h.why = why
		}
	}
}
