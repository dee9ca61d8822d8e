package replay_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// memory is a Feed whose heads can be put anywhere: the model that the cursor is tested against.
type memory struct {
	mu      sync.Mutex
	chains  map[protocol.RunID][]protocol.Entry
	blocks  map[protocol.Link][]byte
	changes uint64
	moved   chan struct{}
	reads   int // entries handed out
}

func newMemory() *memory {
	return &memory{chains: map[protocol.RunID][]protocol.Entry{}, blocks: map[protocol.Link][]byte{}, moved: make(chan struct{})}
}

var _ protocol.Feed = (*memory)(nil)

// entry makes the event that follows another.
func entry(t testing.TB, prev protocol.Entry, text string) protocol.Entry {
	data, err := cas.Encode(protocol.TextSaid{Content: protocol.NewText(text)})
	if err != nil {
		t.Fatal(err)
	}
	step := "coder#1"
	e := protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: prev.CID, Seq: prev.Seq + 1, TS: 1_700_000_000_000_000 + int64(prev.Seq),
		Type: protocol.EvText, Step: &step, Data: data.Data}
	b, err := cas.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Entry{Event: e, CID: b.Link, Raw: b.Data}
}

// add appends n events whose texts tell what they are.
func (m *memory) add(t testing.TB, run protocol.RunID, n int, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chain := m.chains[run]
	for range n {
		var prev protocol.Entry
		if len(chain) > 0 {
			prev = chain[len(chain)-1]
		}
		e := entry(t, prev, fmt.Sprintf("%s %d", what, prev.Seq+1))
		m.blocks[e.CID] = e.Raw
		chain = append(chain, e)
	}
	m.chains[run] = chain
	m.commit()
}

// restore puts the head back to an older event; what came after it stays as blocks.
func (m *memory) restore(run protocol.RunID, seq int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chains[run] = append([]protocol.Entry(nil), m.chains[run][:seq]...)
	m.commit()
}

func (m *memory) commit() {
	m.changes++
	close(m.moved)
	m.moved = make(chan struct{})
}

func (m *memory) chain(run protocol.RunID) []protocol.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]protocol.Entry(nil), m.chains[run]...)
}

func (m *memory) handedOut() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// After reads windows, as a store does: between two of them the head may move.
func (m *memory) After(ctx context.Context, run protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
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

func (m *memory) Block(_ context.Context, l protocol.Link) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.blocks[l]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("block %s: %w", l, protocol.ErrNotFound)
}

func (m *memory) Tip(_ context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chain := m.chains[run]
	if len(chain) == 0 {
		return protocol.Link{}, 0, fmt.Errorf("run %s: %w", run, protocol.ErrUnknownRun)
	}
	e := chain[len(chain)-1]
	return e.CID, e.Seq, nil
}

func (m *memory) Changes(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes, nil
}

func (m *memory) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
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
