// Package memorytest holds a journal of a memory for tests: in memory, shared by as many stores
// as a test opens, and killed on demand.
package memorytest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"wf/agentkit/memory"
	"wf/protocol"
)

// ErrKilled is what an append returns that was made, while its caller died.
var ErrKilled = errors.New("killed after the commit")

// Ledger is a memory.Journal. The zero value is empty; events are a second apart.
type Ledger struct {
	// Killed has appends made and reported as failed. Set it while there is no append.
	Killed bool

	mu       sync.Mutex
	snapshot []byte
	at       protocol.Link // that snapshot belongs to
	asked    int
	entries  []protocol.Entry
	texts    map[protocol.Link]string
	late     int
}

var (
	_ memory.Journal   = (*Ledger)(nil)
	_ memory.Snapshots = (*Ledger)(nil)
)

// Snapshot gives what was kept last.
func (l *Ledger) Snapshot(context.Context) ([]byte, protocol.Link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshot, l.at, l.snapshot != nil
}

// KeepSnapshot keeps a snapshot; nil forgets it.
func (l *Ledger) KeepSnapshot(_ context.Context, data []byte, head protocol.Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshot, l.at = data, head
}

// Read is how many events were read.
func (l *Ledger) Read() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// After yields the events with seq > from.
func (l *Ledger) After(_ context.Context, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		l.mu.Lock()
		all := l.entries // only ever appended to
		l.mu.Unlock()
		for _, e := range all[min(int(from), len(all)):] {
			l.mu.Lock()
			l.asked++
			l.mu.Unlock()
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Append adds events, unless there are newer ones than the caller has read.
func (l *Ledger) Append(_ context.Context, seq protocol.Seq, head protocol.Link, changes []memory.Change) ([]protocol.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(seq) != len(l.entries) || seq > 0 && l.entries[seq-1].CID != head {
		l.late++
		return nil, fmt.Errorf("append: %w", protocol.ErrHeadMoved)
	}
	for _, c := range changes {
		e := protocol.Entry{Event: protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: head,
			Seq: protocol.Seq(len(l.entries) + 1), TS: int64(len(l.entries)+1) * 1e6, Type: c.Data.EventType()}}
		if c.Step != "" {
			e.Step = &c.Step
		}
		data, err := cbor.Marshal(l.spilled(c.Data))
		if err != nil {
			return nil, err
		}
		e.Data = data
		head = protocol.RawLink(fmt.Append(nil, e.Seq, string(data)))
		e.CID = head
		l.entries = append(l.entries, e)
	}
	if l.Killed {
		return nil, ErrKilled
	}
	return slices.Clone(l.entries[seq:]), nil
}

// spilled moves long texts out, as a store does.
func (l *Ledger) spilled(d protocol.Data) any {
	v := reflect.New(reflect.TypeOf(d))
	v.Elem().Set(reflect.ValueOf(d))
	for _, t := range protocol.Texts(v.Interface()) {
		if len(t.S) > protocol.InlineMax {
			t.Link = protocol.RawLink([]byte(t.S))
			if l.texts == nil {
				l.texts = map[protocol.Link]string{}
			}
			l.texts[t.Link] = t.S
		}
	}
	return v.Interface()
}

// Text reads a long text.
func (l *Ledger) Text(_ context.Context, at protocol.Link) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, ok := l.texts[at]
	if !ok {
		return "", fmt.Errorf("text %s: %w", at, protocol.ErrNotFound)
	}
	return text, nil
}

// Entries are the events so far.
func (l *Ledger) Entries() []protocol.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Types are their types.
func (l *Ledger) Types() []string {
	var out []string
	for _, e := range l.Entries() {
		out = append(out, string(e.Type))
	}
	return out
}

// Late counts the appends that were refused because there were newer events.
func (l *Ledger) Late() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}
