package agentkit

import (
	"cmp"
	"context"
	"sync"
	"time"

	"wf/agentkit/ratelimit"
	"wf/protocol"
	"wf/roles"
)

// holds journals when calls of a visit are held by the limits of a provider, and when it goes on. It writes beside the
// visit: what waits may have locks that the journal's writer waits for.
type holds struct {
	ctx  context.Context
	emit roles.Emit

	mu    sync.Mutex
	n     int // calls that are held
	since time.Time
	total time.Duration
	news  []protocol.Data // to be journaled
	busy  chan struct{}   // closed when the writer has ended; nil for none
	err   error           // of emit
}

// watched has the calls under the context it returns watched.
func watched(ctx context.Context, emit roles.Emit) (context.Context, *holds) {
	h := &holds{ctx: roles.Soon(context.WithoutCancel(ctx)), emit: emit}
	return ratelimit.WithWatcher(ctx, func(x ratelimit.Hold) func() {
		return h.begin(protocol.Held{Provider: x.Provider, Limit: string(x.Reason), Max: x.Limit})
	}), h
}

func (h *holds) begin(x protocol.Held) (released func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n++; h.n == 1 {
		h.since = time.Now()
		h.say(x)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.n--; h.n == 0 {
			d := time.Since(h.since)
			h.total += d
			h.say(protocol.Released{MS: d.Milliseconds()})
		}
	}
}

// say has an event journaled; h.mu is held.
func (h *holds) say(x protocol.Data) {
	if h.news = append(h.news, x); h.busy == nil {
		h.busy = make(chan struct{})
		go h.write()
	}
}

func (h *holds) write() {
	for {
		h.mu.Lock()
		news := h.news
		if h.news = nil; len(news) == 0 || h.err != nil {
			close(h.busy)
			h.busy = nil
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		err := h.emit(h.ctx, news...)
		h.mu.Lock()
		h.err = err
		h.mu.Unlock()
	}
}

// join returns when all is journaled: err, or else why something was not.
func (h *holds) join(err error) error {
	h.mu.Lock()
	busy := h.busy
	h.mu.Unlock()
	if busy != nil {
		<-busy
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return cmp.Or(err, h.err)
}

// held is how long calls were held so far; of a nil holds nothing.
func (h *holds) held() time.Duration {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}
