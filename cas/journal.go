package cas

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"wf/protocol"
)

// Journal appends to the events of one run, or memory. Several may be open on one; an append after that of
// another journal is ErrHeadMoved. It is safe for concurrent use, but a caller that stages events must
// be the only one that appends.
type Journal struct {
	s    Backing
	name string     // of the head
	what string     // names it in messages
	turn sync.Mutex // held while an Append is under way

	mu    sync.Mutex
	head  EventRef // as it is on disk; null and 0 before the first
	tip   EventRef // behind what is staged
	fence Fence    // of what is staged
}

// Journal opens the journal of a run; see OpenJournal.
func (s *Store) Journal(ctx context.Context, run protocol.RunID) (*Journal, error) {
	return OpenJournal(ctx, s, run)
}

// OpenJournal opens the journal of a run at its head; a run that does not exist yet begins with
// its first Append.
func OpenJournal(ctx context.Context, s Backing, run protocol.RunID) (*Journal, error) {
	if err := CheckRunID(run); err != nil {
		return nil, err
	}
	h, err := s.Head(ctx, protocol.RunHead(run))
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", run, err)
	}
	return journalAt(s, protocol.RunHead(run), "run "+string(run), EventRef{h.Seq, h.Link}), nil
}

// journalAt is the journal of a head that goes on behind an event.
func journalAt(s Backing, name, what string, at EventRef) *Journal {
	return &Journal{s: s, name: name, what: what, head: at, tip: at}
}

// Under has what is staged from now on written only while a claim holds: see Batch.Fence.
func (j *Journal) Under(f Fence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fence = f
}

// Head is the newest event on disk that the journal knows of; null and 0 before the first.
func (j *Journal) Head() (protocol.Link, protocol.Seq) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head.CID, j.head.Seq
}

// Append makes events of drafts and commits them with blocks and derived values, all or
// nothing. now is unix µs. Texts over protocol.InlineMax become blocks of their own; the
// drafts are not changed. When it returns, all of it is on disk.
//
// ErrHeadMoved means that another process appended: see Catchup. Other errors are those of
// Store.Commit, and ErrInvalidBlock for data that cannot be written.
func (j *Journal) Append(ctx context.Context, now int64, drafts []Draft, blocks []Block, derived ...Derived) ([]protocol.Entry, error) {
	j.turn.Lock()
	defer j.turn.Unlock()
	st, err := j.Stage(now, drafts, blocks, derived...)
	if err != nil {
		return nil, err
	}
	return j.Commit(ctx, st)
}

// Catchup gives the events that others appended since, and moves the journal to the head. An
// error wrapping ErrHeadMoved means that the head now stands on another history.
func (j *Journal) Catchup(ctx context.Context) ([]protocol.Entry, error) {
	j.turn.Lock()
	defer j.turn.Unlock()
	h, err := j.s.Head(ctx, j.name)
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", j.what, err)
	}
	link, seq := j.Head()
	if h.Link == link {
		return nil, nil
	}
	moved := func() error {
		return fmt.Errorf("journal of %s: its head went from event %d to another history: %w", j.what, seq, protocol.ErrHeadMoved)
	}
	if h.Seq <= seq {
		return nil, moved()
	}
	var out []protocol.Entry
	for e, err := range j.s.Events(ctx, j.name, j.what, seq) {
		if err != nil {
			return nil, err
		}
		if len(out) == 0 && e.Prev != link {
			return nil, moved()
		}
		out = append(out, e)
	}
	if n := len(out); n > 0 {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.head = EventRef{out[n-1].Seq, out[n-1].CID}
		j.tip = j.head
	}
	return out, nil
}

// Fork begins the journal of newRun on the event at, with drafts as its first own events, and
// copies nothing. ErrHeadMoved means that newRun exists already. before is called with what is about to be
// committed; nil is not.
func (j *Journal) Fork(ctx context.Context, now int64, newRun protocol.RunID, at protocol.Entry, drafts []Draft, blocks []Block, before func(*Staged)) (*Journal, error) {
	f, st, err := j.StageFork(now, newRun, at, drafts, blocks)
	if err == nil {
		if before != nil {
			before(st)
		}
		_, err = f.Commit(ctx, st)
	}
	if err != nil {
		return nil, fmt.Errorf("fork %s at event %d: %w", j.what, at.Seq, err)
	}
	return f, nil
}

// StageFork is the first half of Fork, so that heads can move with it. Commit of the new journal is the second half.
func (j *Journal) StageFork(now int64, newRun protocol.RunID, at protocol.Entry, drafts []Draft, blocks []Block) (*Journal, *Staged, error) {
	if err := CheckRunID(newRun); err != nil {
		return nil, nil, err
	}
	f := journalAt(j.s, protocol.RunHead(newRun), "run "+string(newRun), EventRef{at.Seq, at.CID})
	j.mu.Lock()
	f.fence = j.fence
	j.mu.Unlock()
	st, err := f.Stage(now, drafts, blocks)
	if err != nil {
		return nil, nil, err
	}
	move := &st.batch.Moves[0]
	move.Old, move.Base = protocol.Link{}, protocol.RunOf(j.name) // the new head does not exist yet
	st.batch.Derived = append(st.batch.Derived, derivedOwn(newRun, move.Events[0]))
	return f, st, nil
}

// notInID reports whether a run id must not hold a character: the signs of paths and of references,
// blanks, and what does not print.
func notInID(r rune) bool {
	return strings.ContainsRune("/\\:", r) || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// CheckRunID keeps ids apart from paths, options, references to steps, and the keys of the store.
func CheckRunID(id protocol.RunID) error {
	if s := string(id); s == "" || len(s) > 200 || strings.ContainsFunc(s, notInID) || s[0] == '.' || s[0] == '-' {
		return fmt.Errorf("%q is no run id: %w", id, protocol.ErrUnknownRun)
	}
	return nil
}
