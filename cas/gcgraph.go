package cas

import (
	"bytes"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// block of the graph that a collection makes.
type gcBlock struct {
	links []uint32
	size  uint32
	state uint8
}

const (
	gcStored uint8 = 1 << iota // a pack has it
	gcLive                     // a head, or a late move of one, leads to it
	gcBuried                   // a run that was deleted leads to it
	gcOdd                      // its links cannot be read
)

// marker is the graph of all blocks of a store: ids are given in the order in which digests are met.
type marker struct {
	ids    map[[32]byte]uint32
	sums   [][32]byte // by id
	blocks []gcBlock
	stones map[[32]byte][]protocol.Link // tombstones: the newest event that the run had, and what kept its files
}

func newMarker() marker {
	return marker{ids: map[[32]byte]uint32{}, stones: map[[32]byte][]protocol.Link{}}
}

func (m *marker) id(sum [32]byte) uint32 {
	id, ok := m.ids[sum]
	if !ok {
		id = uint32(len(m.blocks))
		m.ids[sum] = id
		m.sums = append(m.sums, sum)
		m.blocks = append(m.blocks, gcBlock{})
	}
	return id
}

// seen is what is read of a block.
type seenBlock struct {
	sum   [32]byte
	size  int
	links []ref
	odd   bool
	stone []protocol.Link
}

// lookAt reads the links of a block.
func lookAt(u *unpacked) seenBlock {
	b := seenBlock{sum: u.digest, size: len(u.data)}
	var err error
	if b.links, err = linksIn(u.codec, u.data); err != nil {
		b.odd = true
	}
	if u.codec != cid.Raw && bytes.Contains(u.data, tombstoneMark) {
		var t protocol.Tombstone
		if Decode(u.data, &t) == nil && t.Kind == protocol.KindTombstone {
			for _, text := range []string{t.Head, t.Files} {
				if l, err := protocol.ParseLink(text); err == nil {
					b.stone = append(b.stone, l)
				}
			}
		}
	}
	return b
}

// tombstoneMark is what stands in every tombstone.
var tombstoneMark = []byte("d" + "kind" + "i" + protocol.KindTombstone) // as DAG-CBOR: text of 4 bytes, text of 9

// add takes a block into the graph.
func (m *marker) add(b *seenBlock) {
	id := m.id(b.sum)
	if m.blocks[id].state&gcStored != 0 {
		return
	}
	var links []uint32
	for _, l := range b.links {
		links = append(links, m.id(l.to.sum))
	}
	g := &m.blocks[id]
	g.state |= gcStored
	if b.odd {
		g.state |= gcOdd
	}
	g.size, g.links = uint32(b.size), links
	if len(b.stone) > 0 {
		m.stones[b.sum] = b.stone
	}
}
