package cas

import (
	"cmp"
	"slices"
)

// gatherMax is how many bytes of small blocks the batches of one transaction pack together. A
// reader of one of the runs unpacks what the others wrote beside it: with 5 KiB that takes twice as
// long as with a segment for each batch, and saves a writer little more than 3 KiB do.
const gatherMax = 3 << 10

// gathered is the small blocks of the batches of a transaction that are to be packed together.
// Runs that go on at the same time write records that look alike, and to lay out the dictionary
// takes longer than to compress what a step writes.
type gathered struct {
	blocks []Block
	known  map[string]struct{} // their digests
}

// gather adds the blocks that are not there yet.
func (lk *lookup) gather(blocks []Block) {
	g := &lk.gathered
	for _, b := range blocks {
		digest := sumOf(b.Link)
		if _, ok := g.known[digest]; ok || lk.present(b) {
			continue
		}
		if g.known == nil {
			g.known = map[string]struct{}{}
		}
		g.known[digest] = struct{}{}
		g.blocks = append(g.blocks, b)
	}
}

// putGathered stores what was gathered.
func (s *Store) putGathered(lk *lookup) error {
	blocks := lk.gathered.blocks
	for len(blocks) > 0 {
		n, size := 0, 0
		for n < len(blocks) && n < packBlocks && size < gatherMax {
			size += len(blocks[n].Data)
			n++
		}
		if err := s.put(lk, packed{blocks[:n], packSorted(blocks[:n])}); err != nil {
			return err
		}
		blocks = blocks[n:]
	}
	lk.gathered = gathered{}
	return nil
}

// packSorted puts blocks in the order of a pack, and packs them: payloads first, as a segment
// holds only one sort.
func packSorted(blocks []Block) []byte {
	slices.SortStableFunc(blocks, func(a, b Block) int { return cmp.Compare(a.Link.CID().Type(), b.Link.CID().Type()) })
	return pack(blocks)
}
