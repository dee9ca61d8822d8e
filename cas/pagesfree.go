package cas

import (
	"encoding/binary"
	"fmt"
	"math"
)

// checkFree holds the list of free pages against the pages in use: one that is on both would
// be written over by the next commit. It reads the heads of pages and the branches, not the
// values.
func (p *pageFile) checkFree() {
	if p.root == 0 || p.free == math.MaxUint64 {
		return
	}
	used := p.pagesInUse()
	list, err := p.image(p.free, pageFree)
	if err != nil {
		p.fault(fmt.Sprintf("page %d, the list of free pages: %v", p.free, err))
		return
	}
	count := uint64(p.size / p.page)
	n, ids := freeCount(list), list[pageHead:]
	if binary.LittleEndian.Uint16(list[10:]) == math.MaxUint16 {
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		p.fault(fmt.Sprintf("page %d: a list of %d free pages does not fit", p.free, n))
		return
	}
	for i := range n {
		id := binary.LittleEndian.Uint64(ids[8*i:])
		if id < 2 || id >= count || used[id] {
			p.fault(fmt.Sprintf("page %d: free according to page %d, but in use or outside of the file", id, p.free))
		}
	}
}

// pagesInUse are the pages that the tree holds.
func (p *pageFile) pagesInUse() map[uint64]bool {
	used := map[uint64]bool{}
	take := func(id uint64) ([]byte, bool) {
		head := make([]byte, pageHead)
		count := uint64(p.size / p.page)
		if id < 2 || id >= count || used[id] {
			return nil, false
		}
		if _, err := p.in.ReadAt(head, int64(id)*p.page); err != nil {
			return nil, false
		}
		overflow := uint64(binary.LittleEndian.Uint32(head[12:]))
		for i := range min(overflow, count-id-1) + 1 {
			used[id+i] = true
		}
		return head, true
	}
	quiet := *p
	quiet.fault, quiet.used = func(string) {}, nil // what is wrong here is said elsewhere
	var walk func(id uint64, depth int, nested bool)
	walk = func(id uint64, depth int, nested bool) {
		head, ok := take(id)
		leaf := ok && binary.LittleEndian.Uint16(head[8:]) == pageLeaf
		if !ok || depth > pageDepth || leaf && !nested {
			return
		}
		c, ok := quiet.read(id)
		if !ok {
			return
		}
		for _, it := range c.items {
			switch {
			case !c.leaf:
				walk(it.child, depth+1, nested)
			case it.bucket && len(it.value) >= bucketHead:
				if root := binary.LittleEndian.Uint64(it.value); root != 0 {
					walk(root, depth+1, string(it.key) == string(bucketIndex))
				}
			}
		}
	}
	walk(p.root, 0, true)
	return used
}

// freeCount is how many pages a list of free pages has; a large number stands before the list.
func freeCount(list []byte) uint64 {
	if n := binary.LittleEndian.Uint16(list[10:]); n < math.MaxUint16 {
		return uint64(n)
	}
	return binary.LittleEndian.Uint64(list[pageHead:])
}
