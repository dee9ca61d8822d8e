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
	return m.s.journalAt(protocol.MemoryHead(m.scope), "memory "+m.scope, prev).Append(ctx, now, drafts, nil)
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
