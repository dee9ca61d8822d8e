package rules

import (
	"maps"
	"slices"

	"wf/protocol"
)

// conversations are the newest ok visits of a role: the plain one, and, by value, those of items
// of fan-outs. Of equal items the n-th goes on with the n-th.
type conversations struct {
	plain *convo
	items map[protocol.Link][]*convo // by rank among equal items; null where one had no end
}

// convo is an end of a conversation.
type convo struct {
	N      int           `cbor:"n"`      // activation
	Record protocol.Link `cbor:"record"` // StepRecord, or the Compaction of a visit that failed
	Visit  int           `cbor:"visit"`
	Size   int64         `cbor:"size"` // tokens of the first request of that visit, 0 is not known
}

// equalItems is the rule for equal items of a fan-out.
type equalItems bool

const (
	lastOfEqual equalItems = false // semantics 1: all of them go on with the last one
	nthOfEqual  equalItems = true  // since semantics 2
)

// equalItems is the rule of the Start in force.
func (s *State) equalItems() equalItems { return s.begun.Start.Semantics >= semanticsEqualItems }

// ranks counts, for each value as it comes, the equal ones before it.
type ranks map[protocol.Link]int

func (r ranks) next(value protocol.Link, rule equalItems) int {
	n := r[value]
	if rule == nthOfEqual {
		r[value]++
	}
	return n
}

// with adds where the visits of a leave their conversations.
func (c *conversations) with(a *act, rule equalItems) *conversations {
	out := &conversations{}
	if c != nil {
		out.plain, out.items = c.plain, maps.Clone(c.items)
	}
	ranks := ranks{}
	for _, v := range a.visits {
		rank := 0
		if v.Item != nil {
			rank = ranks.next(v.Item.Value, rule)
		}
		next := v.end(a.N)
		switch {
		case next == nil:
		case v.Item == nil:
			out.plain = next
		default:
			if out.items == nil {
				out.items = map[protocol.Link][]*convo{}
			}
			list := slices.Clone(out.items[v.Item.Value])
			for len(list) <= rank {
				list = append(list, nil)
			}
			list[rank] = next
			out.items[v.Item.Value] = list
		}
	}
	return out
}

// item is the conversation of an item by its rank among equal ones; nil where there is none.
func (c *conversations) item(value protocol.Link, rank int) *convo {
	if list := c.items[value]; rank < len(list) {
		return list[rank]
	}
	return nil
}

// merge keeps, of each conversation, the nearer end; of two incomparable ones the first.
func (s *State) merge(a, b *conversations) *conversations {
	if a == nil || a == b {
		return b
	}
	out := &conversations{plain: s.nearer(a.plain, b.plain), items: maps.Clone(a.items)}
	if out.items == nil {
		out.items = map[protocol.Link][]*convo{}
	}
	for value, list := range b.items {
		have := slices.Clone(out.items[value])
		for i, c := range list {
			if i == len(have) {
				have = append(have, nil)
			}
			have[i] = s.nearer(have[i], c)
		}
		out.items[value] = have
	}
	return out
}

func (s *State) nearer(a, b *convo) *convo {
	switch {
	case a == nil:
		return b
	case b == nil || !s.isAncestor(a.N, b.N):
		return a
	}
	return b
}

// resumable is the conversation that a new visit continues; rank is that of its item among equal
// ones.
func (s *State) resumable(up ancestry, role string, item *protocol.Item, rank int) *convo {
	r, ok := s.prog.Workflow.RoleNamed(role)
	c := up.convs[role]
	if !ok || c == nil || s.context(r) == protocol.ContextFresh {
		return nil
	}
	if item == nil {
		return c.plain
	}
	return c.item(item.Value, rank)
}

// end is where the conversation of a visit stands after it; nil where the visit leaves it as
// it was. One that failed is no turn, but what it compacted stays so.
func (v *visit) end(n int) *convo {
	switch {
	case v.Status == protocol.StepOK:
		return &convo{N: n, Record: v.Record, Visit: v.Number, Size: max(0, v.Size)}
	case v.Compacted:
		return &convo{N: n, Record: v.Resumes, Visit: v.Number - 1}
	}
	return nil
}

// sizeBefore is what the first request of the visit before v held, 0 where that is not known.
func (a *act) sizeBefore(v *visit, rule equalItems) int64 {
	c := a.convs[a.Role]
	if c == nil || !v.Resumes.Defined() {
		return 0
	}
	last := c.plain
	if v.Item != nil {
		last = c.item(v.Item.Value, a.rank(v, rule))
	}
	if last == nil {
		return 0
	}
	return last.Size
}

// rank is how many items before v are equal to it.
func (a *act) rank(v *visit, rule equalItems) int {
	n := 0
	if rule == nthOfEqual {
		for _, x := range a.visits[:max(0, v.Index)] {
			if x != nil && x.Item != nil && x.Item.Value == v.Item.Value {
				n++
			}
		}
	}
	return n
}
