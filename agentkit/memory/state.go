package memory

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"wf/protocol"
)

// State is what the events of a scope add up to. It is not safe for concurrent use.
type State struct {
	Head  protocol.Link // the newest event; null before the first
	Seq   protocol.Seq  // of Head
	Model string        // its vectors find the memories; "" before the first

	list   []slot // by id
	at     map[protocol.Seq]int
	live   int
	tagged map[string][]int32      // folded tag → slots that had it, ascending or not, maybe twice
	keys   map[string]protocol.Seq // of changes → their event
	anchor protocol.Seq            // 0 is none

	kept   protocol.Seq // the newest event of the snapshot there is, 0 for none
	lender string       // the model of the snapshot that it came from, "" for none
	moved  bool         // a memory of it moved to another file
}

// slot is a memory, or what a removed one left.
type slot struct {
	Memory
	gone bool
}

// Fold reads a journal. Events of types it does not know are passed over.
func Fold(events iter.Seq2[protocol.Entry, error]) (*State, error) {
	s := newState()
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if err := s.Apply(&e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func newState() *State {
	return &State{at: map[protocol.Seq]int{}, tagged: map[string][]int32{}, keys: map[string]protocol.Seq{}}
}

// Apply takes in the next event. One that speaks of a memory which is not there changes
// nothing: it was removed by an earlier event.
func (s *State) Apply(e *protocol.Entry) error {
	if e.Seq != s.Seq+1 {
		return fmt.Errorf("event %d of a memory after %d: %w", e.Seq, s.Seq, protocol.ErrCorrupt)
	}
	data, err := e.AnyData()
	if err != nil {
		return fmt.Errorf("event %d of a memory, %s: %w: %w", e.Seq, e.Type, protocol.ErrCorrupt, err)
	}
	switch d := data.(type) {
	case protocol.Remembered:
		s.remembered(e, d)
	case protocol.Edited:
		s.change(e, d.ID, d.MemoryOrigin, func(m *slot) {
			if d.Place != nil {
				s.moved = s.moved || m.lent != nil && d.Content.Empty() && (m.Place == nil || m.Place.File != d.Place.File)
				m.Place = d.Place
			}
			if !d.Content.Empty() {
				m.Content, m.event, m.lent = d.Content, e.Seq, nil
			}
		})
	case protocol.Pinned:
		s.change(e, d.ID, d.MemoryOrigin, func(m *slot) { m.Pinned = true })
	case protocol.Unpinned:
		s.change(e, d.ID, d.MemoryOrigin, func(m *slot) { m.Pinned = false })
	case protocol.Tagged:
		s.change(e, d.ID, d.MemoryOrigin, func(m *slot) { s.tag(m, d.Tags) })
	case protocol.Removed:
		s.change(e, d.ID, d.MemoryOrigin, s.remove)
	case protocol.Indexed:
		s.Model = d.Model
	}
	s.Seq, s.Head = e.Seq, e.CID
	return nil
}

func (s *State) remembered(e *protocol.Entry, d protocol.Remembered) {
	s.key(e, d.MemoryOrigin)
	s.Model = cmp.Or(s.Model, d.Model)
	if d.Special != "" {
		if old, ok := s.find(s.anchor); ok {
			s.remove(old)
		}
		s.anchor = e.Seq
	}
	s.at[e.Seq] = len(s.list)
	s.list = append(s.list, slot{Memory: Memory{ID: e.Seq, Content: d.Content, Pinned: d.Pinned, Special: d.Special, Place: d.Place,
		At: e.TS, Changed: e.TS, By: d.By, Run: d.Run, Step: e.StepName(), event: e.Seq}})
	s.tag(&s.list[len(s.list)-1], d.Tags)
	s.live++
}

func (s *State) key(e *protocol.Entry, o protocol.MemoryOrigin) {
	if _, there := s.keys[o.Key]; o.Key != "" && !there {
		s.keys[o.Key] = e.Seq
	}
}

func (s *State) change(e *protocol.Entry, id protocol.Seq, o protocol.MemoryOrigin, do func(*slot)) {
	s.key(e, o)
	if m, ok := s.find(id); ok {
		do(m)
		m.Changed = e.TS
	}
}

func (s *State) tag(m *slot, tags []string) {
	m.Tags = tags
	for _, t := range tags {
		t = foldTag(t)
		s.tagged[t] = append(s.tagged[t], int32(s.at[m.ID]))
	}
}

func (s *State) remove(m *slot) {
	m.gone = true
	s.live--
	if m.ID == s.anchor {
		s.anchor = 0
	}
}

func (s *State) find(id protocol.Seq) (*slot, bool) {
	i, ok := s.at[id]
	if !ok || s.list[i].gone {
		return nil, false
	}
	return &s.list[i], true
}

// Len is how many memories there are.
func (s *State) Len() int { return s.live }

// Get finds a memory.
func (s *State) Get(id protocol.Seq) (Memory, bool) {
	m, ok := s.find(id)
	if !ok {
		return Memory{}, false
	}
	return m.Memory, true
}

// Anchor is the special memory in front of all others.
func (s *State) Anchor() (Memory, bool) { return s.Get(s.anchor) }

// Newest yields the memories, the one remembered last first.
func (s *State) Newest() iter.Seq[Memory] {
	return func(yield func(Memory) bool) {
		for i := len(s.list) - 1; i >= 0; i-- {
			if !s.list[i].gone && !yield(s.list[i].Memory) {
				return
			}
		}
	}
}

// Pins are the pinned memories in the order of their ids, without the anchor.
func (s *State) Pins() []Memory {
	var out []Memory
	for i := range s.list {
		if m := &s.list[i]; m.Pinned && !m.gone && m.Special == "" {
			out = append(out, m.Memory)
		}
	}
	return out
}

// slots are the places of the memories that have tags, ascending; without tags, of all.
func (s *State) slots(tags []string, mode Mode) []int32 {
	if len(tags) == 0 {
		out := make([]int32, 0, s.live)
		for i := range s.list {
			if !s.list[i].gone {
				out = append(out, int32(i))
			}
		}
		return out
	}
	var out []int32
	for n, t := range tags {
		if mode == All && n > 0 {
			break // the first tag's are enough to look at
		}
		out = append(out, s.tagged[foldTag(t)]...)
	}
	if !slices.IsSorted(out) { // one tag, never changed: they are
		slices.Sort(out)
	}
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(i int32) bool { return s.list[i].gone || !s.list[i].has(tags, mode) })
}

// has reports whether a memory has one of the tags, or all of them.
func (m *slot) has(tags []string, mode Mode) bool {
	for _, want := range tags {
		found := slices.ContainsFunc(m.Tags, func(t string) bool { return foldTag(t) == foldTag(want) })
		if found != (mode == All) {
			return found
		}
	}
	return mode == All
}

// ContextFor finds memories by tags alone, the newest first, at most limit of them.
func (s *State) ContextFor(tags []string, mode Mode, limit int) []Memory {
	slots := s.slots(tidy(tags), mode)
	var out []Memory
	for i := len(slots) - 1; i >= 0 && len(out) < limit; i-- {
		out = append(out, s.list[slots[i]].Memory)
	}
	return out
}
