package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"wf/protocol"
)

// Query asks for memories.
type Query struct {
	Text  string   // "" asks by tags alone
	Tags  []string // only memories that have them
	Mode  Mode     // "" is Any
	Limit int      // 0 is DefaultRecall, and DefaultContext by tags alone
	// Within is how far a hit may be; 0 is any distance.
	Within float64
}

// Recall finds the memories nearest to what is asked for, the nearest first and of equally near
// ones the newest. Each candidate is measured. By tags alone the newest come first.
func (s *Store) Recall(ctx context.Context, q Query) ([]Hit, error) {
	q.Tags = tidy(q.Tags)
	q.Limit = min(q.Limit, MaxHits)
	text := Kept(q.Text)
	if text == "" {
		return s.byTags(ctx, q)
	}
	if q.Limit <= 0 {
		q.Limit = DefaultRecall
	}
	s.mu.Lock()
	err := s.refresh(ctx)
	candidates := s.state.slots(q.Tags, q.Mode)
	name, nameErr := s.modelName(s.state)
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case nameErr != nil:
		return nil, nameErr
	case len(candidates) == 0:
		return nil, nil
	}
	m, err := s.measure(ctx, name, text, candidates)
	if err != nil {
		return nil, fmt.Errorf("recall from memory %s: %w", s.c.Scope, s.advised(err))
	}
	return s.nearest(m, candidates, q)
}

func (s *Store) byTags(ctx context.Context, q Query) ([]Hit, error) {
	if len(q.Tags) == 0 {
		return nil, refused("", "a question needs a text or tags")
	}
	if q.Limit <= 0 {
		q.Limit = DefaultContext
	}
	var hits []Hit
	err := s.View(ctx, func(st *State) {
		for _, m := range st.ContextFor(q.Tags, q.Mode, q.Limit) {
			hits = append(hits, Hit{Memory: m})
		}
	})
	return hits, err
}

// nearest picks the hits among the candidates.
func (s *Store) nearest(m measured, candidates []int32, q Query) ([]Hit, error) {
	order := make([]int32, 0, len(candidates))
	for i := range candidates {
		if q.Within <= 0 || float64(m.far[i]) <= q.Within {
			order = append(order, int32(i))
		}
	}
	nearer := func(a, b int32) int {
		if c := cmp.Compare(m.far[a], m.far[b]); c != 0 {
			return c
		}
		return cmp.Compare(candidates[b], candidates[a])
	}
	order = smallest(order, q.Limit, nearer)
	hits := make([]Hit, 0, len(order))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range order {
		if err := m.table.Check(m.gen, m.rows[i]); err != nil {
			return nil, fmt.Errorf("recall from memory %s: %w", s.c.Scope, s.advised(err))
		}
		slot := &s.state.list[candidates[i]]
		if slot.gone {
			continue // meanwhile
		}
		far := float64(m.far[i])
		hits = append(hits, Hit{slot.Memory, &far})
	}
	return hits, nil
}

// smallest gives the first n of list in order: the list may be long, and n is small.
func smallest(list []int32, n int, less func(a, b int32) int) []int32 {
	first := make([]int32, 0, n+1)
	for _, x := range list {
		if len(first) == n && less(x, first[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(first, x, less)
		first = slices.Insert(first, at, x)
		first = first[:min(n, len(first))]
	}
	return first
}

// Listing is what list_memories shows.
type Listing struct {
	Anchor *Memory
	Pinned []Memory
	Recent []Memory // not pinned, the newest first
	More   int      // not pinned and not shown
}

// List gives the pinned memories and the newest of the others.
func (s *Store) List(ctx context.Context, recent int) (Listing, error) {
	var l Listing
	err := s.View(ctx, func(st *State) {
		if a, ok := st.Anchor(); ok {
			l.Anchor = &a
		}
		l.Pinned = st.Pins()
		for m := range st.Newest() {
			switch {
			case m.Pinned || m.Special != "":
			case len(l.Recent) < recent:
				l.Recent = append(l.Recent, m)
			default:
				l.More++
			}
		}
	})
	return l, err
}

// Get finds a memory.
func (s *Store) Get(ctx context.Context, id protocol.Seq) (m Memory, there bool, err error) {
	err = s.View(ctx, func(st *State) { m, there = st.Get(id) })
	return m, there, err
}
