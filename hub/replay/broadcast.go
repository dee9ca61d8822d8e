package replay

import (
	"maps"
	"slices"
	"sync"

	"wf/protocol"
)

// Broadcast hands the deltas of runs that this process drives to the subscribers. The zero
// Broadcast is ready. The driver of a run calls Event for everything that became durable and
// Delta for everything else, in order for each run; neither blocks. For a run that another process drives, Pass and
// Settle do the same.
type Broadcast struct {
	mu   sync.Mutex
	runs map[protocol.RunID]*channel
}

// channel is one run: its newest event, and the subscribers.
type channel struct {
	after protocol.Seq
	said  map[string]int64 // deltas of each open step
	open  sayings
	subs  map[*func(protocol.LiveDelta)]bool
	drove bool // this process drives the run: an event or a delta came, and not yet the end
}

var _ protocol.Deltas = (*Broadcast)(nil)

func (b *Broadcast) channel(run protocol.RunID) *channel {
	c := b.runs[run]
	if c == nil {
		if b.runs == nil {
			b.runs = map[protocol.RunID]*channel{}
		}
		c = &channel{said: map[string]int64{}, subs: map[*func(protocol.LiveDelta)]bool{}}
		b.runs[run] = c
	}
	return c
}

// Event notes the newest event of a run.
func (b *Broadcast) Event(run protocol.RunID, e *protocol.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.channel(run)
	c.drive()
	c.after = e.Seq
	c.open.remove(e.StepName())
	switch e.Type {
	case protocol.EvStepCompleted:
		delete(c.said, e.StepName())
	case protocol.EvDone, protocol.EvCancelled:
		b.end(run, c)
	}
}

// Delta hands out a piece of output of a step.
func (b *Broadcast) Delta(run protocol.RunID, step string, d protocol.Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.channel(run)
	c.drive()
	c.said[step]++
	out := protocol.LiveDelta{Run: run, After: c.after, Step: step, N: c.said[step], Delta: d}
	c.open.add(out)
	c.send(out)
}

// drive notes that this process drives the run: what another one said before is no longer being said.
func (c *channel) drive() {
	if !c.drove {
		c.drove = true
		c.open.clear()
	}
}

func (c *channel) send(d protocol.LiveDelta) {
	for send := range c.subs {
		(*send)(d)
	}
}

// End says that this process no longer drives a run; what was noted of it is forgotten.
func (b *Broadcast) End(run protocol.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.runs[run]; c != nil {
		b.end(run, c)
	}
}

func (b *Broadcast) end(run protocol.RunID, c *channel) {
	c.drove = false
	clear(c.said)
	c.open.clear()
	if len(c.subs) == 0 {
		delete(b.runs, run)
	}
}

// Subscribe sends the deltas of a run to send until stop is called, first those of what is being
// said, joined; see protocol.Deltas.
func (b *Broadcast) Subscribe(run protocol.RunID, send func(protocol.LiveDelta)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.channel(run)
	c.subs[&send] = true
	for _, step := range slices.Sorted(maps.Keys(c.open.of)) {
		for _, p := range c.open.of[step] {
			d := p.last
			d.Delta.Text = string(p.text)
			send(d)
		}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(c.subs, &send)
		if len(c.subs) == 0 && !c.drove && b.runs[run] == c {
			delete(b.runs, run)
		}
	}
}
