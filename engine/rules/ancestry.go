package rules

import (
	"fmt"
	"maps"
	"slices"

	"wf/protocol"
)

// ancestry is what an activation inherits from the tokens it consumes.
type ancestry struct {
	edges   []int          // firings of each edge among the ancestors
	entries map[string]int // activations of each role among the ancestors
	latest  map[string]*ref
	convs   map[string]*conversations
}

// ancestry sums up the ancestors of a token made of sources. With one source that is the
// source's own sum; the result must then not be altered in place.
func (s *State) ancestry(sources []*act) (ancestry, error) {
	first := sources[0]
	up := ancestry{first.Edges, first.Entries, first.offer.latest, first.offer.convs}
	if len(sources) == 1 {
		return up, nil
	}
	base, region, err := s.region(sources)
	if err != nil {
		return up, err
	}
	up.edges, up.entries = slices.Clone(base.Edges), map[string]int{}
	maps.Copy(up.entries, base.Entries)
	fired := map[int]bool{}
	for _, a := range region {
		up.entries[a.Role]++
		if a.Via != protocol.ViaLimit && a.Edge != noEdge && !fired[a.Take] {
			fired[a.Take] = true
			up.edges[a.Edge]++
		}
	}
	up.latest, up.convs = map[string]*ref{}, map[string]*conversations{}
	for _, p := range sources {
		for role, r := range p.offer.latest {
			if have, ok := up.latest[role]; !ok || s.isAncestor(have.N, r.N) {
				up.latest[role] = r
			}
		}
		for role, c := range p.offer.convs {
			up.convs[role] = s.merge(up.convs[role], c)
		}
	}
	return up, nil
}

// isAncestor reports whether activation a is an ancestor of activation b. What has left the
// live region is an ancestor of all that is in it.
func (s *State) isAncestor(a, b int) bool {
	if a >= b || s.act(b) == nil {
		return false
	}
	if s.act(a) == nil {
		return true
	}
	seen := map[int]bool{}
	todo := []int{b}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x := s.act(n)
		if x == nil {
			continue
		}
		for _, p := range x.Parents {
			if p == a {
				return true
			}
			if p > a && !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return false
}

// region finds the nearest activation that every path to the tips passes (their dominator)
// and what lies between, tips included. A tip that dominates the others is the base itself.
func (s *State) region(tips []*act) (base *act, between []*act, err error) {
	seen := map[int]bool{}
	var front []*act // ascending n, no duplicates
	push := func(a *act) {
		if seen[a.N] {
			return
		}
		seen[a.N] = true
		i, _ := slices.BinarySearchFunc(front, a.N, func(x *act, n int) int { return x.N - n })
		front = slices.Insert(front, i, a)
	}
	for _, t := range tips {
		push(t)
	}
	for len(front) > 1 {
		a := front[len(front)-1]
		front = front[:len(front)-1]
		between = append(between, a)
		for _, n := range a.Parents {
			p := s.act(n)
			if p == nil {
				return nil, nil, fmt.Errorf("activation %d left the live region too early", n)
			}
			push(p)
		}
	}
	return front[0], between, nil
}

// tidy drops what the rules cannot reach any more, once that is worth the walk.
func (s *State) tidy() {
	if len(s.acts) >= s.tidyAt {
		s.prune()
		s.tidyAt = 2*len(s.acts) + 64
	}
}

// prune keeps the live activations and what lies between them and their dominator.
func (s *State) prune() {
	if len(s.agenda.open)+len(s.agenda.tokens) > 0 {
		s.pruneBut(map[int]bool{})
	}
}

// pruneBut is prune that keeps further activations, by their numbers; without a live one it keeps these alone.
func (s *State) pruneBut(kept map[int]bool) {
	tips := slices.Concat(s.agenda.open, s.agenda.tokens)
	if s.Closing != nil {
		tips = slices.DeleteFunc(tips, func(a *act) bool {
			kept[a.N] = kept[a.N] || a.Via == protocol.ViaAlways
			return a.Via == protocol.ViaAlways
		})
		if c := s.Closing.Newest; c > 0 {
			kept[c] = true
		}
	}
	if len(tips) > 0 {
		base, between, err := s.region(tips)
		if err != nil {
			return // nothing is lost by keeping more
		}
		for _, a := range append(between, base) {
			kept[a.N] = true
		}
	}
	s.keepOnly(kept)
}

// keepOnly drops all other activations; what they took stays in the times.
func (s *State) keepOnly(kept map[int]bool) {
	var keep []*act
	for _, a := range s.acts {
		if kept[a.N] {
			keep = append(keep, a)
			continue
		}
		a.laps(s.Timed.add)
		if name := (stepName{a.Role, a.Num}); s.agenda.steps[name] == a {
			delete(s.agenda.steps, name)
		}
	}
	s.acts = keep
}
