package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"wf/hub/guard"
	"wf/hub/internal/lately"
	"wf/hub/queue"
	"wf/protocol"
)

// payload is the body of a job, in memory alone, with the client that submitted it.
type payload struct {
	body []byte
	by   guard.Identity
}

// payloads are the bodies of the jobs that wait, and what workers refused jobs with. Both are
// bounded: a body that does not fit stays in the outbox of the client.
type payloads struct {
	refused lately.Map[string, *answer] // by job

	mu    sync.Mutex
	of    map[string]*payload
	bytes int
}

// Bounds of what waits, and of the refusals that are kept.
const (
	maxPayloads     = 10_000
	maxPayloadBytes = 256 << 20
	maxRefusals     = 1000
)

// put takes the body of a job, unless there is one; false says that there is no room.
func (p *payloads) put(id string, x *payload) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]*payload{}
	}
	if p.of[id] != nil {
		return true
	}
	if len(p.of) >= maxPayloads || p.bytes+len(x.body) > maxPayloadBytes {
		return false
	}
	p.of[id] = x
	p.bytes += len(x.body)
	return true
}

func (p *payloads) get(id string) *payload {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[id]
}

// drop forgets the body of a job that is over.
func (p *payloads) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.of[id]; x != nil {
		p.bytes -= len(x.body)
		delete(p.of, id)
	}
}

func (p *payloads) ids() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.of))
}

// keep takes the body of a job. Where there is no room, bodies of jobs that ended unheard make
// some; else the error wraps protocol.ErrRateLimited.
func (h *Hub) keep(ctx context.Context, id string, x *payload) error {
	if h.payloads.put(id, x) {
		return nil
	}
	for _, old := range h.payloads.ids() {
		e, err := h.Queue.Find(ctx, old)
		if errors.Is(err, queue.ErrUnknownJob) || err == nil && (e.State == queue.Done || e.State == queue.Dead) {
			h.payloads.drop(old)
		}
	}
	if h.payloads.put(id, x) {
		return nil
	}
	return fmt.Errorf("too many jobs wait already: %w", protocol.ErrRateLimited)
}
