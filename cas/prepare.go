package cas

import (
	"fmt"
	"sync"

	"wf/protocol"
)

// prepare checks blocks and packs them, in the goroutine of the caller.
func (s *Store) prepare(blocks []Block) ([]packed, error) {
	if s.opts.ReadOnly {
		return nil, fmt.Errorf("%s was opened for reading: %w", s.gate.dir, protocol.ErrReadOnly)
	}
	var out []packed
	var shared []Block
	size, together := 0, s.queue.isCrowded()
	flush := func() {
		if len(shared) > 0 {
			p := packed{blocks: shared}
			if !together {
				p.stored = packSorted(shared)
			}
			out, shared, size = append(out, p), nil, 0
		}
	}
	seen := make(map[protocol.Link]bool, len(blocks))
	for _, b := range blocks {
		if seen[b.Link] {
			continue
		}
		seen[b.Link] = true
		if _, err := digestOf(b.Link); err != nil {
			return nil, fmt.Errorf("commit: %w", err)
		}
		if err := Admit(b); err != nil {
			return nil, fmt.Errorf("commit: %w", err)
		}
		switch {
		case s.queue.recent.has(b.Link):
			out = append(out, packed{blocks: []Block{b}})
		case len(b.Data) > smallBlock:
			one := []Block{b}
			stored, err := s.stored(one)
			if err != nil {
				return nil, fmt.Errorf("commit: block %s: %w", b.Link, classify(err))
			}
			out = append(out, packed{one, stored})
		default:
			if size += len(b.Data); size > packMax || len(shared) == packBlocks {
				flush()
				size = len(b.Data)
			}
			shared = append(shared, b)
		}
	}
	flush()
	return out, nil
}

// stored is the stored form of a pack, of which the blocks are put in order; a large one goes to a
// blob file first.
func (s *Store) stored(blocks []Block) ([]byte, error) {
	p := packSorted(blocks)
	if len(p) <= inlineMax || len(blocks) > 1 {
		return p, nil
	}
	digest := []byte(sumOf(blocks[0].Link))
	if err := s.writeBlob(digest, p); err != nil {
		return nil, err
	}
	return append([]byte{packBlob}, digest...), nil
}

// recent remembers blocks that were committed lately: they are probably there, so packing
// them again is probably wasted. The committer makes sure.
type recent struct {
	mu  sync.Mutex
	set map[protocol.Link]struct{}
}

const recentMax = 4096

func (r *recent) has(l protocol.Link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.set[l]
	return ok
}

func (r *recent) add(blocks []Block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set == nil {
		r.set = make(map[protocol.Link]struct{})
	} else if len(r.set)+len(blocks) > recentMax {
		clear(r.set)
	}
	for i := range blocks {
		r.set[blocks[i].Link] = struct{}{}
	}
}
