package protocol

import "sync"

// Records are StepRecords and Compactions by their CIDs. They never change: With makes a larger
// set that shares what it holds, so that the visits of a run do not each keep a copy of all that
// came before them. nil is none. They are safe for concurrent use.
type Records struct {
	byCID *Layers[Link, ranked]
	n     int
	memo  *sync.Map
}

// ranked is a record with a number higher than those of all that it goes on from.
type ranked struct {
	past *Past
	rank int
}

// With adds records, in any order; those of the same CIDs are hidden. Of what records go on from
// nothing is added later.
func (r *Records) With(more ...Past) *Records {
	if len(more) == 0 {
		return r
	}
	out := &Records{memo: &sync.Map{}}
	var below *Layers[Link, ranked]
	if r != nil {
		out.n, out.memo, below = r.n, r.memo, r.byCID
	}
	fresh := make(map[Link]ranked, len(more))
	for i := range more {
		fresh[more[i].CID] = ranked{&more[i], 0}
	}
	for l := range fresh {
		if _, hidden := below.Get(l); hidden {
			out.memo = &sync.Map{} // what was kept may follow from it
		} else {
			out.n++
		}
	}
	rank(fresh, below, more)
	out.byCID = below.With(fresh)
	return out
}

// rank numbers fresh records. Those that lead to themselves get some number.
func rank(fresh map[Link]ranked, below *Layers[Link, ranked], more []Past) {
	type frame struct {
		past  *Past
		links []Link // still to go to
		rank  int
	}
	begun := make(map[Link]bool, len(fresh))
	var stack []frame
	push := func(p *Past) {
		if begun[p.CID] {
			return
		}
		begun[p.CID] = true
		links := append([]Link{p.Resumes}, p.Parents...)
		if c := p.Compaction; c != nil {
			links = append(links, c.Prior, c.Covers)
		}
		stack = append(stack, frame{p, links, 1})
	}
	for i := range more {
		push(fresh[more[i].CID].past)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.links) == 0 {
				fresh[top.past.CID] = ranked{top.past, top.rank}
				stack = stack[:len(stack)-1]
				continue
			}
			l := top.links[0]
			x, there := fresh[l]
			if !there {
				x, there = below.Get(l)
			} else if !begun[l] {
				push(x.past)
				continue
			}
			if there {
				top.rank = max(top.rank, x.rank+1)
			}
			top.links = top.links[1:]
		}
	}
}

// Get finds a record. Its rank is higher than those of all records that it goes on from.
func (r *Records) Get(l Link) (p *Past, rank int, ok bool) {
	if r == nil {
		return nil, 0, false
	}
	x, ok := r.byCID.Get(l)
	return x.past, x.rank, ok
}

// Len is how many records there are.
func (r *Records) Len() int {
	if r == nil {
		return 0
	}
	return r.n
}

// Kept gives what Keep noted under a key, here or in a set that shares records with this one.
func (r *Records) Kept(key any) (value any, ok bool) {
	if r == nil {
		return nil, false
	}
	return r.memo.Load(key)
}

// Keep notes what follows from a record and from those it goes on from, and from nothing else, to
// be found sooner the next time.
func (r *Records) Keep(key, value any) {
	if r != nil {
		r.memo.Store(key, value)
	}
}
