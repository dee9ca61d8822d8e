package cas

import (
	"context"
	"sync"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// readerMax is how many bytes of blocks a reader remembers at most, twice.
const readerMax = 1 << 20

// Reader gives a function that reads blocks as Block does, and remembers those that are stored together with one that was read: the
// files of a tree are, so most of them cost no look into the store. Several goroutines may call it; what it gives must not be changed.
func (s *Store) Reader(ctx context.Context, _ ...protocol.Link) func(protocol.Link) ([]byte, error) {
	x := &reading{s: s, ctx: ctx}
	return x.block
}

// reading remembers blocks by their digests: those of late, and those from before it was full.
type reading struct {
	s     *Store
	ctx   context.Context
	mu    sync.Mutex
	now   map[[32]byte][]byte
	older map[[32]byte][]byte
	size  int // bytes of now
}

func (x *reading) block(l protocol.Link) (data []byte, err error) {
	digest, err := digestOf(l)
	if err != nil {
		return nil, err
	}
	if data, ok := x.known([32]byte([]byte(digest))); ok {
		return data, x.ctx.Err()
	}
	err = x.s.view(x.ctx, func(tx *bolt.Tx) error {
		lk := x.s.newLookup(tx)
		if data, err = lk.block(l); err == nil && len(lk.near) > 1 {
			x.remember(lk.near)
		}
		return err
	})
	return data, err
}

func (x *reading) known(digest [32]byte) ([]byte, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	data, ok := x.now[digest]
	if !ok {
		data, ok = x.older[digest]
	}
	return data, ok
}

func (x *reading) remember(blocks []unpacked) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now == nil || x.size > readerMax {
		x.now, x.older, x.size = map[[32]byte][]byte{}, x.now, 0
	}
	for i := range blocks {
		x.now[blocks[i].digest] = blocks[i].data
		x.size += len(blocks[i].data)
	}
}
