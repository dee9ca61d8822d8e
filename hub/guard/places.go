package guard

import (
	"container/list"
	"sync"

	"wf/protocol"
)

// Places are a bounded number of things that clients hold for a while: connections, sockets, bodies that are read.
//
// A new one never waits. Where no place is free it takes that of another one which may be cut off: the oldest of the
// holder that has the most. So the slow and the idle give way, each holder loses its own first, and a flood of one
// costs the others nothing. Where none may be cut off the new one is refused.
//
// The fields are set once, before use; the zero value has no places. It is safe for concurrent use.
type Places struct {
	What string // they are, in the plural
	Most int    // at once
	// Each is how many one holder may have, Favoured how many one that is favoured, Shared how many one whose name many
	// share; 0 is no bound but Most.
	Each, Favoured, Shared int
	// Kept are those of Most that are for holders that are favoured.
	Kept int
	// Spared are so many of each favoured holder that do not count when it is asked who has the most.
	Spared int

	mu    sync.Mutex
	order list.List      // of *Place, the oldest first
	held  map[string]int // by the name of the holder
	plain int            // held by those that are not favoured
}

// PlacesOfStreams are those of sockets and streams, of which none gives way to another one: no client takes all of them,
// and some are kept for owners.
func PlacesOfStreams(most int) Places {
	return Places{What: "sockets and streams", Most: most, Each: max(1, most/4), Favoured: max(1, most*3/4), Kept: most / 8}
}

// A Holder is who holds a place.
type Holder struct {
	Name     string // "" is one that is not known: it counts for the bound of all alone
	Favoured bool
	Shared   bool
}

// A Place is held until Leave, or until it is taken for another one.
type Place struct {
	of   *Places
	by   Holder
	at   *list.Element // nil once it is held no longer
	busy bool          // it is not taken for another one
	cut  func()
}

// Take gives a place to a holder. One that is not busy may be taken for another: cut is called then, once, and never
// after Leave. It is called while the places are locked: it must neither wait nor take, leave or change a place. An
// error wraps protocol.ErrRateLimited, and says which bound was met.
func (p *Places) Take(by Holder, busy bool, cut func()) (*Place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := p.Each
	switch {
	case by.Favoured:
		most = p.Favoured
	case by.Shared:
		most = p.Shared
	}
	if by.Name != "" && most > 0 && p.held[by.Name] >= most && !p.clear(func(x *Place) bool { return x.by.Name == by.Name }) {
		return nil, p.full("one client may have %d %s here at once", most)
	}
	if !by.Favoured && p.plain >= p.Most-p.Kept && !p.clear(func(x *Place) bool { return !x.by.Favoured }) {
		return nil, p.full("all %d %s are taken that are not kept for others", p.Most-p.Kept)
	}
	if p.order.Len() >= p.Most && !p.clear(func(*Place) bool { return true }) {
		return nil, p.full("all %d %s are taken", p.Most)
	}
	if p.held == nil {
		p.held = map[string]int{}
	}
	x := &Place{of: p, by: by, busy: busy, cut: cut}
	x.at = p.order.PushBack(x)
	p.held[by.Name]++
	if !by.Favoured {
		p.plain++
	}
	return x, nil
}

func (p *Places) full(format string, most int) error {
	return protocol.ErrRateLimited.With("close some of them, or try again later", format, most, p.What)
}

// clear takes a place from its holder: of those that are meant and may be cut off the oldest of the holder that has the
// most. It reports whether there was one. The caller holds mu.
func (p *Places) clear(meant func(*Place) bool) bool {
	var worst *Place
	most := 0
	for e := p.order.Front(); e != nil; e = e.Next() {
		x := e.Value.(*Place)
		if x.busy || !meant(x) {
			continue
		}
		n := p.held[x.by.Name]
		if x.by.Favoured {
			n = max(0, n-p.Spared)
		}
		if worst == nil || n > most {
			worst, most = x, n
		}
	}
	if worst == nil {
		return false
	}
	worst.drop()
	worst.cut()
	return true
}

// drop frees a place; the caller holds mu.
func (x *Place) drop() {
	if x.at == nil {
		return
	}
	p := x.of
	p.order.Remove(x.at)
	x.at = nil
	if p.held[x.by.Name]--; p.held[x.by.Name] == 0 {
		delete(p.held, x.by.Name)
	}
	if !x.by.Favoured {
		p.plain--
	}
}

// Leave gives a place back; one that is held no longer stays as it is.
func (x *Place) Leave() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.drop()
}

// Busy says whether a place may be taken for another one.
func (x *Place) Busy(yes bool) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.busy = yes
}

// Held is how many places are taken.
func (p *Places) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order.Len()
}
