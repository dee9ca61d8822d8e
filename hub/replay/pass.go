package replay

import (
	"strings"

	"wf/protocol"
)

// nameMax is how many bytes the name of a step, or of a kind, may have that another process says.
const nameMax = 4 << 10

// Drives reports whether this process drives a run.
func (b *Broadcast) Drives(run protocol.RunID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.runs[run]
	return c != nil && c.drove
}

// Pass hands out a delta of a run that another process drives, as it came from there. It does nothing while this
// process drives the run, or without a subscriber. What comes again after Lose is not handed out twice.
func (b *Broadcast) Pass(d protocol.LiveDelta) {
	if len(d.Step) > nameMax || len(d.Delta.Kind) > nameMax || len(d.Delta.Text) > deltaMax {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.passes(d.Run); c != nil && c.open.anew(&d) {
		c.send(d)
	}
}

// Settle notes an event of such a run: the journal has what its step said. An event of which only the seq is known
// may be of any step.
func (b *Broadcast) Settle(run protocol.RunID, e *protocol.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.passes(run)
	if c == nil {
		return
	}
	switch e.Type {
	case "", protocol.EvDone, protocol.EvCancelled, protocol.EvSuspended:
		c.open.clear()
	default:
		c.open.remove(e.StepName())
	}
}

// Lose says that the connection to the process that drives a run is gone. The next one begins with what is being
// said, as Subscribe does: with the same again, unless it leads to another process.
func (b *Broadcast) Lose(run protocol.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.passes(run); c != nil {
		for _, said := range c.open.of {
			for i := range said {
				said[i].stale = true
			}
		}
	}
}

// passes is the channel of a run that another process drives; nil without a subscriber.
func (b *Broadcast) passes(run protocol.RunID) *channel {
	if c := b.runs[run]; c != nil && !c.drove {
		return c
	}
	return nil
}

// anew keeps a delta, and takes out of it what a connection that is gone said of the same piece. It reports whether
// anything is left.
func (s *sayings) anew(d *protocol.LiveDelta) bool {
	said := s.of[d.Step]
	for i := range said {
		p := &said[i]
		if !p.stale || p.last.Delta.Kind != d.Delta.Kind || p.last.N > d.N {
			continue
		}
		rest, same := strings.CutPrefix(d.Delta.Text, string(p.text))
		switch {
		case same && (rest == "" || d.N > p.last.N):
			d.Delta.Text = rest
		case len(p.text) >= openMax && len(d.Delta.Text) >= openMax: // of both the end, and where the new part begins is not known
			s.bytes -= len(p.text)
			p.text, rest = p.text[:0], ""
		default:
			continue
		}
		p.stale = false
		s.grow(p, *d)
		return rest != ""
	}
	if n := len(said); n > 0 && said[n-1].stale {
		s.remove(d.Step) // another process says something else
	}
	s.add(*d)
	return true
}
