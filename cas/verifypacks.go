package cas

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// openTogether is how many bytes of stored packs are unpacked and examined at once, on all
// processors.
const openTogether = 512 << 10

// openedPack is a pack on its way into the graph.
type openedPack struct {
	key, stored []byte
	at          int64 // of stored, in the file
	blocks      []unpacked
	nodes       []*node // nil for a block in a damaged part
	err         error
}

// openAll unpacks, hashes and examines packs, and gives them to take in order.
func (d *storeEvidence) openAll(batch []*openedPack, take func(*openedPack)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(batch)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(batch) {
					return
				}
				p := batch[i]
				p.blocks, p.err = d.open(p.stored)
				p.nodes = make([]*node, len(p.blocks))
				for j, u := range p.blocks {
					if u.codec != 0 {
						p.nodes[j] = examine(u.codec, u.data)
					}
				}
			}
		})
	}
	workers.Wait()
	for _, p := range batch {
		take(p)
	}
}

// take adds a pack to the graph, and reports it when it is damaged.
func (d *storeEvidence) take(p *openedPack) {
	if p.err != nil {
		d.report(Finding{Kind: "corrupt", Where: fileDB + " pack " + packNumber(p.key), Expected: "a pack of blocks", Actual: oneLine(p.err), Fix: restoreFix})
	}
	for i, u := range p.blocks {
		if p.nodes[i] == nil {
			continue
		}
		d.g.put(blockName{u.codec, u.digest}, p.nodes[i])
		if d.index.p == nil {
			d.loose[u.digest] = loose{p.at, len(p.stored), i}
		}
	}
}
