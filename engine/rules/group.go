package rules

import (
	"cmp"
	"slices"

	"wf/protocol"
)

// Group is the block of a concurrency group, with the rules by which it moves. They are pure: whether what holds a slot
// still acts, and whether a process waits with what is in the queue, is said by the engine.
type Group struct{ protocol.Group }

// Entry is what wants a slot of a group.
type Entry struct {
	protocol.Use
	Root   protocol.RunID
	Within []protocol.Use // the run, and the runs and steps that it is a part of
	Max    int            // slots, as this entry counts them
}

// Has reports whether a use is in the group: it holds a slot, or shares one.
func (g *Group) Has(u protocol.Use) bool {
	return slices.ContainsFunc(g.Slots, func(s protocol.Slot) bool { return slices.Contains(s.Uses, u) })
}

// Ticket is that of a use in the queue, 0 where it does not wait.
func (g *Group) Ticket(u protocol.Use) int64 {
	for _, c := range g.Group.Queue {
		if c.Use == u {
			return c.Ticket
		}
	}
	return 0
}

// Room reports whether an entry may enter now: it shares a slot, or one is free and passed is true for all that waits
// before it.
func (g *Group) Room(x Entry, passed func(protocol.Claim) bool) bool {
	if g.shared(x) >= 0 {
		return true
	}
	if len(g.Slots) >= x.Max {
		return false
	}
	for _, c := range g.Group.Queue {
		if c.Use == x.Use {
			break
		}
		if !passed(c) {
			return false
		}
	}
	return true
}

// shared is the slot that an entry shares, −1 for none. A run shares any slot of its root; an attempt that of its run, or
// of what that is a part of: attempts side by side have a slot each.
func (g *Group) shared(x Entry) int {
	return slices.IndexFunc(g.Slots, func(s protocol.Slot) bool {
		return s.Root == x.Root && (x.Step == "" || slices.ContainsFunc(s.Uses, func(u protocol.Use) bool { return slices.Contains(x.Within, u) }))
	})
}

// Enter has an entry leave the queue and take a slot, or share one. The block changes also where the entry was in
// before, so that no process that saw it unused takes its slot away.
func (g *Group) Enter(x Entry) (ticket int64) {
	if ticket = g.Ticket(x.Use); ticket == 0 {
		g.Last++
		ticket = g.Last
	}
	g.Sweep(func(u protocol.Use) bool { return u == x.Use })
	if i := g.shared(x); i >= 0 {
		g.Slots = slices.Clone(g.Slots)
		g.Slots[i].Uses = append(slices.Clone(g.Slots[i].Uses), x.Use)
		return ticket
	}
	at, _ := slices.BinarySearchFunc(g.Slots, ticket, func(s protocol.Slot, t int64) int { return cmp.Compare(s.Ticket, t) })
	g.Slots = slices.Insert(slices.Clone(g.Slots), at, protocol.Slot{Ticket: ticket, Root: x.Root, Uses: []protocol.Use{x.Use}})
	return ticket
}

// Queue has an entry wait, behind all that waits. One that waits keeps its ticket.
func (g *Group) Queue(x Entry) (ticket int64) {
	if ticket = g.Ticket(x.Use); ticket == 0 {
		g.Last++
		ticket = g.Last
		g.Group.Queue = append(slices.Clone(g.Group.Queue), protocol.Claim{Ticket: ticket, Root: x.Root, Use: x.Use})
	}
	return ticket
}

// Sweep takes all uses, and all that waits, of which gone is true out of the group; a slot that none uses is free. It
// reports whether there were any. A copy of the group that was made before stays as it was.
func (g *Group) Sweep(gone func(protocol.Use) bool) (left bool) {
	queue := slices.DeleteFunc(slices.Clone(g.Group.Queue), func(c protocol.Claim) bool { return gone(c.Use) })
	left = len(queue) < len(g.Group.Queue)
	var slots []protocol.Slot
	for _, s := range g.Slots {
		uses := slices.DeleteFunc(slices.Clone(s.Uses), gone)
		left = left || len(uses) < len(s.Uses)
		if s.Uses = uses; len(uses) > 0 {
			slots = append(slots, s)
		}
	}
	g.Group.Queue, g.Slots = queue, slots
	return left
}

// Holders are what holds the slots, for people: each by the first of its uses.
func (g *Group) Holders() []protocol.Use {
	out := make([]protocol.Use, len(g.Slots))
	for i, s := range g.Slots {
		out[i] = s.Uses[0]
	}
	return out
}
