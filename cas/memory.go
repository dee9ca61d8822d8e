package cas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"wf/protocol"
)

// Memory is the journal of a memory: a chain of events under the head memory/<scope>. It keeps
// no state, so it is safe for concurrent use; collections never take from it, since its head
// reaches all of it.
type Memory struct {
	s     *Store
	scope string
}

// Memory gives the journal of a scope, which begins with its first Append. A scope is a name
// of at most 200 bytes that may have parts: role/fix-bug/coder.
func (s *Store) Memory(scope string) (*Memory, error) {
	if err := checkScope(scope); err != nil {
		return nil, err
	}
	return &Memory{s, scope}, nil
}

// checkScope keeps scopes apart from the keys of the store.
func checkScope(scope string) error {
	bad := scope == "" || len(scope) > 200
	for part := range strings.SplitSeq(scope, "/") {
		bad = bad || part == "" || part == "." || part == ".."
	}
	if bad || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\ufffd' }) {
		return fmt.Errorf("%q is no scope of a memory (want names of letters, digits and signs, joined by /): %w", scope, protocol.ErrUsage)
	}
	return nil
}

// After yields the events with seq > from, as Store.After does; none of a scope that has no
// events yet.
func (m *Memory) After(ctx context.Context, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for e, err := range m.s.events(ctx, protocol.MemoryHead(m.scope), "memory "+m.scope, from) {
			if from == 0 && errors.Is(err, protocol.ErrUnknownRun) {
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Append adds events behind prev, the newest event that the caller has read (the zero EventRef
// is none), all or nothing; now is unix µs. ErrHeadMoved means that there are newer ones: read
// them, decide again. When it returns, all of it is on disk.
func (m *Memory) Append(ctx context.Context, now int64, prev EventRef, drafts []Draft) ([]protocol.Entry, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	move := Move{Name: protocol.MemoryHead(m.scope), Old: prev.CID, TS: now}
	entries := make([]protocol.Entry, len(drafts))
	var texts, events []Block
	for i, d := range drafts {
		e, blocks, err := d.event(prev, now)
		if err != nil {
			return nil, fmt.Errorf("event %d of memory %s: %w", prev.Seq+1, m.scope, err)
		}
		texts, events = append(texts, blocks...), append(events, Block{e.CID, e.Raw})
		prev = EventRef{e.Seq, e.CID}
		entries[i] = e
		move.Events = append(move.Events, prev)
	}
	move.New = prev.CID
	// Events side by side: a reader of a journal of many texts unpacks fewer, and larger, segments.
	if err := m.s.Commit(ctx, Batch{Blocks: append(texts, events...), Moves: []Move{move}}); err != nil {
		return nil, fmt.Errorf("journal of memory %s: %w", m.scope, err)
	}
	return entries, nil
}

// Memories lists the scopes there are, by name.
func (s *Store) Memories(ctx context.Context) ([]string, error) {
	heads, err := s.Heads(ctx, protocol.MemoryHead(""))
	if err != nil {
		return nil, err
	}
	out := make([]string, len(heads))
	for i, h := range heads {
		out[i] = strings.TrimPrefix(h.Name, protocol.MemoryHead(""))
	}
	return out, nil
}
