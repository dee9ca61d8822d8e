package cas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"wf/protocol"
)

// A Chain is a journal that belongs to no run: that of a memory, or of a sink of notifications. It keeps
// no state, so it is safe for concurrent use; collections never take from it, since its head
// reaches all of it.
type Chain struct {
	s    Backing
	head string
	what string
}

// OpenMemory gives the journal of a scope, under the head memory/<scope>, which begins with its first Append. A scope
// is a name of at most 200 bytes that may have parts: role/fix-bug/coder.
func OpenMemory(s Backing, scope string) (*Chain, error) {
	if err := checkScope(scope, "scope of a memory"); err != nil {
		return nil, err
	}
	return &Chain{s, protocol.MemoryHead(scope), "memory " + scope}, nil
}

// checkScope keeps scopes apart from the keys of the store.
func checkScope(scope, what string) error {
	bad := scope == "" || len(scope) > 200
	for part := range strings.SplitSeq(scope, "/") {
		bad = bad || part == "" || part == "." || part == ".."
	}
	if bad || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\ufffd' }) {
		return fmt.Errorf("%q is no %s (want names of letters, digits and signs, joined by /): %w", scope, what, protocol.ErrUsage)
	}
	return nil
}

// After yields the events with seq > from, as Store.After does; none of a journal that has no
// events yet.
func (c *Chain) After(ctx context.Context, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for e, err := range c.s.Events(ctx, c.head, c.what, from) {
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
// them, decide again. When it returns, all of it is on disk, but for what is derived.
func (c *Chain) Append(ctx context.Context, now int64, prev EventRef, drafts []Draft, derived ...Derived) ([]protocol.Entry, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	return journalAt(c.s, c.head, c.what, prev).Append(ctx, now, drafts, nil, derived...)
}
