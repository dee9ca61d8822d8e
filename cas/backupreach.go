package cas

import (
	"context"
	"encoding/binary"
	"fmt"

	"wf/protocol"
)

// reachGraph finds what heads lead to while packs are read in any order. Where they come from the newest to the oldest,
// most blocks are known to be reached when they come: a block links to what was stored before it. What comes too
// early, as the blocks of an import do and those that a collection moved, is marked when something leads to it.
//
// Blocks go by the first 8 bytes of their digests. Two that begin alike are one block here, with the links of both: so
// it may reach too much, and never too little.
type reachGraph struct {
	ids   map[uint64]uint32
	names []uint64 // by id
	nodes []reachNode
	links []uint32            // of the nodes that came, one behind the other
	more  map[uint32][]uint32 // of nodes that several blocks are
	todo  []uint32            // reached, and their links not followed
}

type reachNode struct {
	first uint64 // in links
	count uint32
	state uint8
}

const (
	reachCame uint8 = 1 << iota
	reachLive       // a head leads to it
	reachWeak       // a move of a head in the reflog does, if it is still there
	reachOdd        // its links cannot be read
)

// glimpse is what a backup knows of a block.
type glimpse struct {
	name  uint64
	links []uint64
	odd   bool
}

// briefly is how a reachGraph names a block.
func briefly(digest []byte) uint64 { return binary.BigEndian.Uint64(digest) }

// glimpseOf reads the links of a block.
func glimpseOf(u *unpacked) glimpse {
	links, err := linksIn(u.codec, u.data)
	b := glimpse{name: briefly(u.digest[:]), odd: err != nil}
	for i := range links {
		b.links = append(b.links, briefly(links[i].to.sum[:]))
	}
	return b
}

func (g *reachGraph) id(name uint64) uint32 {
	id, ok := g.ids[name]
	if !ok {
		if g.ids == nil {
			g.ids, g.more = map[uint64]uint32{}, map[uint32][]uint32{}
		}
		id = uint32(len(g.nodes))
		g.ids[name] = id
		g.names = append(g.names, name)
		g.nodes = append(g.nodes, reachNode{})
	}
	return id
}

// want says that a head leads to a block; weakly, that the reflog does.
func (g *reachGraph) want(name uint64, weakly bool) {
	id := g.id(name)
	if weakly {
		g.nodes[id].state |= reachWeak
		return
	}
	g.reach(id)
}

func (g *reachGraph) reach(id uint32) {
	n := &g.nodes[id]
	if n.state&reachLive == 0 {
		n.state |= reachLive
		if n.state&reachCame != 0 {
			g.todo = append(g.todo, id)
		}
	}
}

// add takes a block in, and gives its id; follow is to come behind it.
func (g *reachGraph) add(b *glimpse) uint32 {
	id := g.id(b.name)
	if g.nodes[id].state&reachCame != 0 {
		g.again(id, b)
		return id
	}
	first := uint64(len(g.links))
	for _, to := range b.links {
		g.links = append(g.links, g.id(to))
	}
	n := &g.nodes[id]
	n.first, n.count = first, uint32(len(b.links))
	n.state |= reachCame
	if b.odd {
		n.state |= reachOdd
	}
	if n.state&reachWeak != 0 {
		n.state |= reachLive
	}
	if n.state&reachLive != 0 {
		g.todo = append(g.todo, id)
	}
	return id
}

// addAll takes the blocks of a pack in, and marks what is reached.
func (g *reachGraph) addAll(blocks []glimpse) []uint32 {
	ids := make([]uint32, len(blocks))
	for i := range blocks {
		ids[i] = g.add(&blocks[i])
	}
	g.follow()
	return ids
}

// again takes in a block that came before, or another one that begins alike.
func (g *reachGraph) again(id uint32, b *glimpse) {
	n := g.nodes[id]
	same := int(n.count) == len(b.links) && b.odd == (n.state&reachOdd != 0)
	for i := 0; same && i < len(b.links); i++ {
		same = g.names[g.links[n.first+uint64(i)]] == b.links[i]
	}
	if same {
		return
	}
	for _, to := range b.links {
		g.more[id] = append(g.more[id], g.id(to))
	}
	if b.odd {
		g.nodes[id].state |= reachOdd
	}
	if n.state&reachLive != 0 {
		g.todo = append(g.todo, id)
	}
}

// follow marks what is reached from what came.
func (g *reachGraph) follow() {
	for len(g.todo) > 0 {
		id := g.todo[len(g.todo)-1]
		g.todo = g.todo[:len(g.todo)-1]
		n := g.nodes[id]
		for _, to := range g.links[n.first : n.first+uint64(n.count)] {
			g.reach(to)
		}
		for _, to := range g.more[id] {
			g.reach(to)
		}
	}
}

// live reports whether one of these blocks is reached.
func (g *reachGraph) live(ids []uint32) bool {
	for _, id := range ids {
		if g.nodes[id].state&reachLive != 0 {
			return true
		}
	}
	return false
}

// lacks reports whether something that is reached did not come, or cannot be read.
func (g *reachGraph) lacks() bool {
	for i := range g.nodes {
		if s := g.nodes[i].state; s&reachLive != 0 && (s&reachCame == 0 || s&reachOdd != 0) {
			return true
		}
	}
	return false
}

// wanted begins the graph with what heads and reflog lead to.
func (b *backup) wanted(refs, reflog []entry) error {
	for _, it := range refs {
		h, err := parseHead(string(it.key), it.value)
		if err != nil {
			return err
		}
		n, ok := nameOf(h.Link)
		if !ok {
			return noBlockOfStore("head "+h.Name, h.Link)
		}
		b.graph.want(briefly(n.sum[:]), false)
	}
	for _, it := range reflog {
		moves, err := movesIn(it, b.m.At-ReflogKept.Microseconds())
		if err != nil {
			return err
		}
		for _, n := range moves {
			b.graph.want(briefly(n.sum[:]), true)
		}
	}
	return nil
}

// damage finds what a head leads to and is missing, with the names of both. It trusts nothing that was kept.
func (b *backup) damage(ctx context.Context, refs, reflog []entry) error {
	if err := b.dropLinks(); err != nil {
		return err
	}
	c := &collector{s: b.s, clock: b.m.At, marks: newMarker(), blobs: map[[32]byte]bool{}}
	if err := c.readAll(ctx, func(_, _ []byte, _ int) {}); err != nil {
		return err
	}
	for _, it := range refs {
		h, err := parseHead(string(it.key), it.value)
		if err == nil {
			err = c.from(ctx, h.Link, "head "+h.Name)
		}
		if err != nil {
			return err
		}
	}
	for _, it := range reflog {
		if err := c.lines(ctx, it, c.clock-ReflogKept.Microseconds()); err != nil {
			return err
		}
	}
	return fmt.Errorf("a block was missed that is there; make the backup again: %w", protocol.ErrCorrupt)
}
