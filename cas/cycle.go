package cas

import (
	"encoding/binary"
	"errors"
	"fmt"

	"wf/protocol"
)

// checkCycles looks whether a damaged branch page leads back to a page above it: bbolt would
// walk in that circle for ever, and take memory for every round. It reads the branch pages of
// the buckets alone, about one page in a hundred. All other damage is found when it is read.
func checkCycles(path string) error {
	err := readPages(path, (*pageFile).branchesEnd)
	if errors.Is(err, errNoPages) {
		return nil // bbolt refuses it too, and says more
	}
	return err
}

func (p *pageFile) branchesEnd() error {
	trees := []tree{p.top()}
	for _, name := range layoutBuckets {
		if t, ok := p.sub(name); ok {
			trees = append(trees, t)
		}
	}
	for _, name := range layoutIndexes {
		if t, ok := p.sub(bucketIndex, name); ok {
			trees = append(trees, t)
		}
	}
	for _, t := range trees {
		if err := t.branchesEnd(); err != nil {
			return err
		}
	}
	return nil
}

// branchesEnd walks a bucket level by level; all leaves lie on one level.
func (t tree) branchesEnd() error {
	if t.inline != nil {
		if flags := binary.LittleEndian.Uint16(t.inline[8:]); flags != pageLeaf {
			return fmt.Errorf("a bucket within a page is of unknown type %#x, and would lead back to itself: %w", flags, protocol.ErrCorrupt)
		}
		return nil
	}
	above := map[uint64]bool{}
	for level := []uint64{t.root}; len(level) > 0; {
		var below []uint64
		for _, id := range level {
			if above[id] {
				return fmt.Errorf("page %d leads back to itself: %w", id, protocol.ErrCorrupt)
			}
		}
		if !t.p.branch(level[0]) {
			return nil
		}
		for _, id := range level {
			if above[id] {
				return fmt.Errorf("page %d is reached on two ways: %w", id, protocol.ErrCorrupt)
			}
			above[id] = true
			c, ok := t.p.read(id)
			if !ok {
				continue
			}
			for _, it := range c.items {
				below = append(below, it.child)
			}
		}
		level = below
	}
	return nil
}

// branch reports whether a page says of itself that it is a branch page.
func (p *pageFile) branch(id uint64) bool {
	var head [pageHead]byte
	if id < 2 || id >= uint64(p.size/p.page) {
		return false
	}
	if _, err := p.in.ReadAt(head[:], int64(id)*p.page); err != nil {
		return false
	}
	return binary.LittleEndian.Uint16(head[8:]) == pageBranch
}
