package engine

import (
	"sync"

	"wf/cas"
	"wf/protocol"
)

// freshBlocks are those that a driver has made lately: its state reads them before they are committed, and the visits behind them
// go on from them. It is safe for concurrent use; its zero value is ready.
type freshBlocks struct {
	mu    sync.RWMutex
	known map[protocol.Link][]byte
	bytes int
}

// maxFresh bounds, in bytes, the blocks kept in memory after their commit to be read again at
// once.
const maxFresh = 4 << 20

// add remembers blocks.
func (f *freshBlocks) add(blocks []cas.Block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(blocks)
}

func (f *freshBlocks) put(blocks []cas.Block) {
	for _, b := range blocks {
		if _, ok := f.known[b.Link]; ok {
			continue
		}
		if f.known == nil {
			f.known = map[protocol.Link][]byte{}
		}
		f.known[b.Link] = b.Data
		f.bytes += len(b.Data)
	}
}

// trim drops those that the store has once they have grown too many: all but those of the batches on their way.
func (f *freshBlocks) trim(onTheirWay func() []*batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes <= maxFresh {
		return
	}
	clear(f.known)
	f.bytes = 0
	for _, b := range onTheirWay() {
		f.put(b.blocks)
	}
}

// before reads blocks from here, and where they are not, by read.
func (f *freshBlocks) before(read Reader) Reader {
	return func(l protocol.Link) ([]byte, error) {
		f.mu.RLock()
		b, ok := f.known[l]
		f.mu.RUnlock()
		if ok {
			return b, nil
		}
		return read(l)
	}
}
