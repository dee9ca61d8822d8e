package lang

import (
	"fmt"
	"slices"
	"strings"
)

// edgePlan aligns the edges of two definitions. Since the edges of a role are tried in order, it knows a place for
// each in any mixture of both: what keeps its order is an anchor, and between two anchors stand first the places of
// the old definition and then those of the new one.
//
//	old:  A  B  C  D        places:  A  B₁  X  C  D₁  D₂ B₂     B moved, X is new
//	new:  A  X  C  D' B              A      X  C  D'     B
type edgePlan struct {
	pairs []edgePair
	slots []edgeSlot
}

// edgePair is an edge in both definitions; nil is where it is not.
type edgePair struct {
	key      string
	old, now fields
	moved    bool
}

// edgeSlot is a place: of an edge that keeps its order, or of one that is there before or after its change.
type edgeSlot struct {
	pair int
	when slotTime
}

type slotTime int

const (
	ever slotTime = iota
	before
	after
)

// edgeChange names a change of the plan: that an edge comes, goes or moves, or else that its text is another.
type edgeChange struct {
	pair int
	text bool
}

func newEdgePlan(old, now []fields) *edgePlan {
	pairOf := make([]int, len(now)) // the place among the old ones, −1 for none
	taken := make([]bool, len(old))
	for i := range pairOf {
		pairOf[i] = -1
	}
	for _, alike := range []func(a, b fields) bool{
		func(a, b fields) bool { return same(a, b) },
		func(a, b fields) bool { return sameEnds(a, b) && same(textOfEdge(a), textOfEdge(b)) },
		sameEnds,
		func(a, b fields) bool { return len(textOfEdge(a)) > 0 && same(textOfEdge(a), textOfEdge(b)) },
	} {
		for i, n := range now {
			if pairOf[i] >= 0 {
				continue
			}
			for k, o := range old {
				if !taken[k] && alike(o, n) {
					pairOf[i], taken[k] = k, true
					break
				}
			}
		}
	}
	p := &edgePlan{}
	keeps := increasing(pairOf)
	pair := make([]int, len(old)) // the pair of an old edge
	for k, o := range old {
		pair[k] = len(p.pairs)
		p.pairs = append(p.pairs, edgePair{old: o})
	}
	pairNow := make([]int, len(now))
	for i, n := range now {
		k := pairOf[i]
		if k < 0 {
			pairNow[i] = len(p.pairs)
			p.pairs = append(p.pairs, edgePair{now: n})
			continue
		}
		pairNow[i] = pair[k]
		p.pairs[pair[k]].now, p.pairs[pair[k]].moved = n, !keeps[i]
	}
	k := 0
	olds := func(until int) {
		for ; k < until; k++ {
			p.slots = append(p.slots, edgeSlot{pair[k], before})
		}
	}
	var news []int
	flush := func() {
		for _, i := range news {
			p.slots = append(p.slots, edgeSlot{pairNow[i], after})
		}
		news = nil
	}
	for i := range now {
		if !keeps[i] {
			news = append(news, i)
			continue
		}
		olds(pairOf[i])
		flush()
		p.slots = append(p.slots, edgeSlot{pairNow[i], ever})
		k = pairOf[i] + 1
	}
	olds(len(old))
	flush()
	p.name()
	return p
}

// name gives each edge a key of its own.
func (p *edgePlan) name() {
	seen := map[string]int{}
	for i := range p.pairs {
		x := &p.pairs[i]
		e := x.old
		if e == nil {
			e = x.now
		}
		x.key = "edge " + endText(e["from"]) + " → " + endText(e["to"])
		if seen[x.key]++; seen[x.key] > 1 {
			x.key += fmt.Sprintf(" (%d)", seen[x.key])
		}
	}
}

func endText(v any) string {
	list, _ := v.([]any)
	names := make([]string, len(list))
	for i := range list {
		names[i] = fmt.Sprint(list[i])
	}
	return strings.Join(names, ", ")
}

// changes are those of the edges, in the order of the places.
func (p *edgePlan) changes() (out []Change) {
	seen := map[int]bool{}
	for _, s := range p.slots {
		x := p.pairs[s.pair]
		if seen[s.pair] {
			continue
		}
		seen[s.pair] = true
		switch {
		case x.now == nil:
			out = append(out, Change{Key: x.key, Kind: Removed, Old: textOfPart(textOfEdge(x.old)), edges: p, edge: edgeChange{pair: s.pair}})
			continue
		case x.old == nil:
			out = append(out, Change{Key: x.key, Kind: Added, New: textOfPart(textOfEdge(x.now)), edges: p, edge: edgeChange{pair: s.pair}})
			continue
		}
		if x.moved {
			out = append(out, Change{Key: x.key, Kind: Moved, edges: p, edge: edgeChange{pair: s.pair}})
		}
		if !same(x.old, x.now) {
			old, now := fields{}, fields{}
			for _, key := range bothKeys(x.old, x.now) {
				if !same(x.old[key], x.now[key]) {
					copyKey(old, x.old, key)
					copyKey(now, x.now, key)
				}
			}
			out = append(out, Change{Key: x.key, Kind: Changed, Old: textOfPart(old), New: textOfPart(now), edges: p, edge: edgeChange{s.pair, true}})
		}
	}
	return out
}

// applied are the edges with some of the changes.
func (p *edgePlan) applied(some map[edgeChange]bool) []fields {
	out := []fields{}
	for _, s := range p.slots {
		x := p.pairs[s.pair]
		if s.when != ever && some[edgeChange{pair: s.pair}] != (s.when == after) {
			continue
		}
		if x.old == nil || x.now != nil && some[edgeChange{s.pair, true}] {
			out = append(out, x.now)
		} else {
			out = append(out, x.old)
		}
	}
	return out
}

func sameEnds(a, b fields) bool { return same(a["from"], b["from"]) && same(a["to"], b["to"]) }

// textOfEdge is what an edge says beside its ends.
func textOfEdge(e fields) fields {
	out := fields{}
	for key, v := range e {
		if key != "from" && key != "to" {
			out[key] = v
		}
	}
	return out
}

// increasing marks the members of a longest increasing part of a sequence; negative ones are in none.
func increasing(list []int) []bool {
	var ends []int // the places of the smallest last members, by length
	back := make([]int, len(list))
	for i, v := range list {
		if v < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(ends, v, func(place, v int) int { return list[place] - v })
		back[i] = -1
		if at > 0 {
			back[i] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, i)
		} else {
			ends[at] = i
		}
	}
	out := make([]bool, len(list))
	if len(ends) == 0 {
		return out
	}
	for i := ends[len(ends)-1]; i >= 0; i = back[i] {
		out[i] = true
	}
	return out
}
