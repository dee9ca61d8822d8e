package rules

import (
	"fmt"
	"maps"
	"slices"

	"wf/engine/lang"
	"wf/protocol"
)

// fanOut is a for_each after its list was evaluated. The visits of it are made one by one, when they
// are dispatched: a list of 10,000 items with long prompts is never in memory at once.
type fanOut struct {
	base   Decision // what all its visits share; of an empty one the only decision
	up     ancestry
	values []any
	scope  lang.Scope // of the edge prompt, but for item and index
	ranks  []int      // of the items among equal ones, where they go on with conversations
}

// fanOf is the fan-out of an activation that has begun.
func (s *State) fanOf(a *act) (*fanOut, error) {
	if a.fan == nil {
		fan, err := s.fanOut(a.Edge, a.inherited(), a.Links, target{node: a.Role, via: a.Via}, a.Num)
		if err != nil {
			return nil, err
		}
		if len(fan.values) != a.Of {
			return nil, fmt.Errorf("%s has %d items and was begun with %d: %w", a.name(), len(fan.values), a.Of, protocol.ErrCorrupt)
		}
		a.fan = fan
	}
	return a.fan, nil
}

func (s *State) fanOut(edge int, up ancestry, parents []protocol.Link, t target, num int) (*fanOut, error) {
	sc, err := s.scope(edge, up, s.prog.EdgeUses(edge).ForEach)
	if err != nil {
		return nil, err
	}
	fan := &fanOut{up: up}
	if fan.values, err = s.prog.ForEach(edge, sc); err != nil {
		return nil, err
	}
	fan.base = Decision{Role: t.node, Parents: parents, Of: len(fan.values), Edge: edge, Via: t.via, Visit: 1,
		Step: protocol.StepID{Role: t.node, N: num, Index: -1}, Empty: len(fan.values) == 0}
	if c := up.convs[t.node]; c != nil && len(c.items) > 0 {
		if err := fan.rank(s.from, s.equalItems()); err != nil {
			return nil, err
		}
	}
	fan.scope, err = s.promptScope(edge, up)
	return fan, err
}

// rank counts for each item the equal ones before it.
func (fan *fanOut) rank(from Records, rule equalItems) error {
	seen := ranks{}
	for i, v := range fan.values {
		raw, err := protocol.CanonicalJSON(v)
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		fan.ranks = append(fan.ranks, seen.next(from.Name(raw), rule))
	}
	return nil
}

// item is the visit of one item.
func (s *State) item(fan *fanOut, i int) (Decision, error) {
	d := fan.base
	raw, err := protocol.CanonicalJSON(fan.values[i])
	if err != nil {
		return d, fmt.Errorf("item %d: %w", i, err)
	}
	d.Step.Index = i
	d.ItemValue = raw
	d.Item = &protocol.Item{Index: i, Value: s.from.Name(raw)}
	if fan.ranks != nil {
		if c := s.resumable(fan.up, d.Role, d.Item, fan.ranks[i]); c != nil {
			d.Resumes, d.Visit = c.Record, c.Visit+1
		}
	}
	sc := fan.scope
	sc.Item, sc.Index = fan.values[i], i
	d.EdgePrompt, err = s.prog.EdgePrompt(d.Edge, sc)
	return d, err
}

// inherited is what a got from its parents, itself not counted.
func (a *act) inherited() ancestry {
	up := ancestry{slices.Clone(a.Edges), maps.Clone(a.Entries), a.latest, a.convs}
	up.entries[a.Role]--
	if a.Via != protocol.ViaLimit {
		up.edges[a.Edge]--
	}
	return up
}
