package replay

import (
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"wf/protocol"
)

// Broadcast hands the deltas of runs that this process drives to the subscribers. The zero
// Broadcast is ready. The driver of a run calls Event for everything that became durable and
// Delta for everything else, in order for each run; neither blocks.
type Broadcast struct {
	mu   sync.Mutex
	runs map[protocol.RunID]*channel
}

// channel is one run: its newest event, and the subscribers.
type channel struct {
	after protocol.Seq
	said  map[string]int64   // deltas of each open step
	open  map[string][]piece // what each step said since its newest event
	subs  map[*func(protocol.LiveDelta)]bool
	drove bool // an event or a delta came, and not yet the end of the run
}

// piece is deltas of one kind that follow each other.
type piece struct {
	last protocol.LiveDelta // without its text
	text []byte
}

// openMax bounds what is kept of a piece, in bytes: the end of it.
const openMax = 64 << 10

var _ protocol.Deltas = (*Broadcast)(nil)

func (b *Broadcast) channel(run protocol.RunID) *channel {
	c := b.runs[run]
	if c == nil {
		if b.runs == nil {
			b.runs = map[protocol.RunID]*channel{}
		}
		c = &channel{said: map[string]int64{}, open: map[string][]piece{}, subs: map[*func(protocol.LiveDelta)]bool{}}
		b.runs[run] = c
	}
	return c
}

// Event notes the newest event of a run.
func (b *Broadcast) Event(run protocol.RunID, e *protocol.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.channel(run)
	c.after, c.drove = e.Seq, true
	delete(c.open, e.StepName())
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
	c.drove = true
	c.said[step]++
	out := protocol.LiveDelta{Run: run, After: c.after, Step: step, N: c.said[step], Delta: d}
	c.keep(out)
	for send := range c.subs {
		(*send)(out)
	}
}

// keep adds a delta to what its step said since its newest event.
func (c *channel) keep(d protocol.LiveDelta) {
	said := c.open[d.Step]
	if n := len(said); n == 0 || said[n-1].last.Delta.Kind != d.Delta.Kind {
		said = append(said, piece{})
		c.open[d.Step] = said
	}
	p := &said[len(said)-1]
	p.text = append(p.text, d.Delta.Text...)
	if over := len(p.text) - openMax; over > openMax {
		for over < len(p.text) && !utf8.RuneStart(p.text[over]) {
			over++
		}
		p.text = append(p.text[:0], p.text[over:]...)
	}
	d.Delta.Text = ""
	p.last = d
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
	clear(c.open)
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
	for _, step := range slices.Sorted(maps.Keys(c.open)) {
		for _, p := range c.open[step] {
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
