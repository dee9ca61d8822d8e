package replay

import (
	"slices"
	"unicode/utf8"

	"wf/protocol"
)

// sayings is what the steps of a run said since the newest event of each, for clients that come later.
type sayings struct {
	of    map[string][]piece // by step
	bytes int
}

// piece is deltas of one kind that follow each other.
type piece struct {
	last  protocol.LiveDelta // without its text
	text  []byte
	stale bool // it is of a connection that is gone
}

const (
	openMax   = 64 << 10    // bytes that are kept of a piece: its end
	stepMax   = 3 * openMax // of the pieces of a step before its newest one
	piecesMax = 256         // how many these are
	runMax    = 32 << 20    // of a run. Beyond it what was said before is forgotten
)

func (p *piece) cost() int {
	return len(p.last.Step) + len(p.last.Delta.Kind) + len(p.text) + deltaCost
}

// add keeps a delta.
func (s *sayings) add(d protocol.LiveDelta) {
	said := s.of[d.Step]
	if n := len(said); n == 0 || said[n-1].last.Delta.Kind != d.Delta.Kind {
		s.remove(d.Step)
		said = append(newest(said), piece{})
		s.put(d.Step, said)
	}
	s.grow(&said[len(said)-1], d)
}

// grow appends a delta to a piece.
func (s *sayings) grow(p *piece, d protocol.LiveDelta) {
	s.bytes -= p.cost()
	p.text = append(p.text, d.Delta.Text...)
	if over := len(p.text) - openMax; over > openMax {
		for over < len(p.text) && !utf8.RuneStart(p.text[over]) {
			over++
		}
		p.text = append(p.text[:0], p.text[over:]...)
	}
	d.Delta.Text = ""
	p.last = d
	if s.bytes += p.cost(); s.bytes > runMax {
		s.clear()
	}
}

// newest leaves out the oldest pieces of a step where they are too many.
func newest(said []piece) []piece {
	from := len(said)
	for bytes := 0; from > 0 && len(said)-from < piecesMax; from-- {
		if bytes += said[from-1].cost(); bytes > stepMax {
			break
		}
	}
	return slices.Delete(said, 0, from)
}

func (s *sayings) put(step string, said []piece) {
	if len(said) == 0 {
		return
	}
	if s.of == nil {
		s.of = map[string][]piece{}
	}
	s.of[step] = said
	for i := range said {
		s.bytes += said[i].cost()
	}
}

// remove forgets what a step said: an event has it.
func (s *sayings) remove(step string) {
	for i := range s.of[step] {
		s.bytes -= s.of[step][i].cost()
	}
	delete(s.of, step)
}

func (s *sayings) clear() { s.of, s.bytes = nil, 0 }
