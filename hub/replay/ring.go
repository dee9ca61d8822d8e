package replay

import (
	"math"
	"slices"
	"sync"

	"wf/protocol"
)

const (
	ringBytes = 256 << 10 // of deltas held for one subscriber
	deltaMax  = 128 << 10 // of the text of one delta: a frame holds it however it is escaped
	deltaCost = 64        // what a delta costs beside its texts
)

// A ring holds the deltas that a subscriber has not been sent yet; where they are too many,
// the oldest are dropped and counted.
type ring struct {
	ready chan struct{} // holds one signal: there is something to take

	mu      sync.Mutex
	held    []protocol.LiveDelta
	bytes   int
	pushed  int64 // how many there were
	dropped int64
}

func cost(d *protocol.LiveDelta) int {
	return len(d.Step) + len(d.Delta.Kind) + len(d.Delta.Text) + deltaCost
}

func newRing() *ring { return &ring{ready: make(chan struct{}, 1)} }

// push never blocks.
func (r *ring) push(d protocol.LiveDelta) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(d.Delta.Text) > deltaMax {
		r.dropped++
		return
	}
	r.held = append(r.held, d)
	r.pushed++
	r.bytes += cost(&d)
	n := 0
	for ; r.bytes > ringBytes; n++ {
		r.bytes -= cost(&r.held[n])
		r.dropped++
	}
	if n > 0 {
		clear(r.held[:n])
		r.held = r.held[n:]
	}
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// take removes the deltas that were said up to an event. dropped is how many were lost before
// them, ahead reports that later ones are held.
func (r *ring) take(upTo protocol.Seq) (out []protocol.LiveDelta, dropped int64, ahead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for ; n < len(r.held) && r.held[n].After <= upTo; n++ {
		r.bytes -= cost(&r.held[n])
	}
	out, r.held = r.held[:n:n], r.held[n:]
	if len(r.held) == 0 {
		r.held = nil
	}
	if n > 0 {
		dropped, r.dropped = r.dropped, 0
	}
	return out, dropped, r.held != nil
}

// first is the event after which the oldest delta was said; without one it is beyond all events.
func (r *ring) first() protocol.Seq {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) == 0 {
		return math.MaxInt64
	}
	return r.held[0].After
}

// mark is a moment; see forget.
func (r *ring) mark() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pushed
}

// forget drops the deltas that were held at a mark and were said after an event behind the head, as it was read since
// then. An event is durable before a delta names it: these have lost theirs, as the head was put back, or
// another process made them up.
func (r *ring) forget(head protocol.Seq, mark int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.pushed - int64(len(r.held))
	r.held = slices.DeleteFunc(r.held, func(d protocol.LiveDelta) bool {
		at++
		if at > mark || d.After <= head {
			return false
		}
		r.bytes -= cost(&d)
		return true
	})
}
