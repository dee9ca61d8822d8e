package pgstore

import (
	"context"
	"fmt"
	"sync"

	"wf/protocol"
)

// Blocks that are read ahead by one statement: so many, and their stored bytes.
const (
	aheadBlocks = 256
	aheadBytes  = 1 << 20
)

// Reader gives a function that reads blocks, and those of soon some at a time. Several goroutines may call it; what it gives must not be
// changed.
func (s *Store) Reader(ctx context.Context, soon ...protocol.Link) func(protocol.Link) ([]byte, error) {
	if len(soon) == 0 { // what lies beside a block is little
		return func(l protocol.Link) ([]byte, error) { return s.Block(ctx, l) }
	}
	x := &reading{s: s, ctx: ctx, soon: soon, at: make(map[protocol.Link]int, len(soon))}
	for i, l := range soon {
		if _, ok := x.at[l]; !ok {
			x.at[l] = i
		}
	}
	return x.block
}

// reading reads ahead.
type reading struct {
	s    *Store
	ctx  context.Context
	soon []protocol.Link
	at   map[protocol.Link]int // where each is first

	mu  sync.Mutex
	got map[protocol.Link][][]byte // what may hold each, of the last statement: see heldBlocks
}

func (x *reading) block(l protocol.Link) ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	stored, ok := x.got[l]
	if i, known := x.at[l]; !ok && known {
		if err := x.ahead(x.soon[i:min(i+aheadBlocks, len(x.soon))]); err != nil {
			return nil, fmt.Errorf("block %s: %w", l, err)
		}
		stored, ok = x.got[l]
	}
	if ok {
		if data, err := unpacked(l, stored[1], yes(stored[2])); err == nil {
			return data, nil
		}
	}
	return x.s.Block(x.ctx, l) // which says what is wrong
}

// ahead reads blocks as far as there is room for them.
func (x *reading) ahead(links []protocol.Link) error {
	got, err := x.s.storedTogether(x.ctx, links, aheadBytes)
	x.got = make(map[protocol.Link][][]byte, len(got))
	for _, r := range got {
		l, err := protocol.CastLink(r[0])
		if err != nil {
			return fmt.Errorf("wf.blocks names %x: %w", r[0], protocol.ErrCorrupt)
		}
		x.got[l] = r
	}
	return err
}
