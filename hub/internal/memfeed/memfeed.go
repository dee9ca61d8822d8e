// Package memfeed keeps journals in memory and lets their heads be put anywhere: the model that
// tests of live streams compare with.
package memfeed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"wf/protocol"
)

// Feed is a protocol.Feed without a store. It is safe for concurrent use.
type Feed struct {
	mu      sync.Mutex
	chains  map[protocol.RunID][]protocol.Entry
	blocks  map[protocol.Link][]byte
	changes uint64
	moved   chan struct{}
	reads   int // entries handed out
}

// New is an empty feed.
func New() *Feed {
	return &Feed{chains: map[protocol.RunID][]protocol.Entry{}, blocks: map[protocol.Link][]byte{}, moved: make(chan struct{})}
}

var _ protocol.Feed = (*Feed)(nil)

// Next is the event that follows another, with a text.
func Next(prev protocol.Entry, text string) protocol.Entry {
	step := "coder#1"
	data, err := cbor.Marshal(protocol.TextSaid{Content: protocol.NewText(text)})
	e := protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: prev.CID, Seq: prev.Seq + 1, TS: 1_700_000_000_000_000 + int64(prev.Seq),
		Type: protocol.EvText, Step: &step, Data: data}
	raw, bad := protocol.EncodeEvent(&e)
	id, odd := cid.V1Builder{Codec: cid.DagCBOR, MhType: multihash.SHA2_256}.Sum(raw)
	if err := errors.Join(err, bad, odd); err != nil {
		panic("memfeed: " + err.Error())
	}
	return protocol.Entry{Event: e, CID: protocol.NewLink(id), Raw: raw}
}

// Add appends n events, with texts that number them.
func (m *Feed) Add(run protocol.RunID, n int, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chain := m.chains[run]
	for range n {
		var prev protocol.Entry
		if len(chain) > 0 {
			prev = chain[len(chain)-1]
		}
		e := Next(prev, fmt.Sprintf("%s %d", what, prev.Seq+1))
		m.blocks[e.CID] = e.Raw
		chain = append(chain, e)
	}
	m.chains[run] = chain
	m.commit()
}

// Restore puts the head back to an older event; what came after it stays as blocks.
func (m *Feed) Restore(run protocol.RunID, seq int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chains[run] = slices.Clone(m.chains[run][:seq])
	m.commit()
}

func (m *Feed) commit() {
	m.changes++
	close(m.moved)
	m.moved = make(chan struct{})
}

// Chain is what the journal of a run is now.
func (m *Feed) Chain(run protocol.RunID) []protocol.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.chains[run])
}

// HandedOut is how many events After has yielded.
func (m *Feed) HandedOut() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// After reads windows, as a store does: between two of them the head may move.
func (m *Feed) After(ctx context.Context, run protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		var last protocol.Link
		for {
			m.mu.Lock()
			chain, known := m.chains[run]
			n := min(int(from)+7, len(chain))
			var window []protocol.Entry
			if int(from) <= len(chain) {
				window = chain[from:n:n]
			}
			m.mu.Unlock()
			var err error
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case !known:
				err = protocol.ErrUnknownRun
			case int(from) > len(chain):
				err = protocol.ErrFutureCursor
			case len(window) > 0 && last.Defined() && window[0].Prev != last:
				err = protocol.ErrHeadMoved
			}
			if err != nil {
				yield(protocol.Entry{}, err)
				return
			}
			for _, e := range window {
				m.mu.Lock()
				m.reads++
				m.mu.Unlock()
				if !yield(e, nil) {
					return
				}
				from, last = e.Seq, e.CID
			}
			if len(window) == 0 {
				return
			}
		}
	}
}

// Block gives an event, of an old history too.
func (m *Feed) Block(_ context.Context, l protocol.Link) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.blocks[l]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("block %s: %w", l, protocol.ErrNotFound)
}

// Tip is the newest event of a run.
func (m *Feed) Tip(_ context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chain := m.chains[run]
	if len(chain) == 0 {
		return protocol.Link{}, 0, fmt.Errorf("run %s: %w", run, protocol.ErrUnknownRun)
	}
	e := chain[len(chain)-1]
	return e.CID, e.Seq, nil
}

// Changes counts what was added and put back.
func (m *Feed) Changes(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes, nil
}

// AwaitChange waits for another count.
func (m *Feed) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	for {
		m.mu.Lock()
		n, moved := m.changes, m.moved
		m.mu.Unlock()
		if n != since {
			return n, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
}
