package cas

import (
	"context"
	"fmt"
	"strings"

	"wf/protocol"
)

// Staged is events that have their place in a journal and are not on disk yet.
type Staged struct {
	entries []protocol.Entry
	batch   Batch // Moves is empty, or one
	commit  func(context.Context, Batch) error
}

// Head is the newest of the events.
func (st *Staged) Head() (protocol.Link, protocol.Seq) {
	e := st.entries[len(st.entries)-1]
	return e.CID, e.Seq
}

// First is the oldest of the events.
func (st *Staged) First() (protocol.Link, protocol.Seq) { return st.entries[0].CID, st.entries[0].Seq }

// Stage is the first half of Append: it makes the events, behind those that were staged
// before, and packs them, so that this is done while others are written. Commit is the second
// half.
func (j *Journal) Stage(now int64, drafts []Draft, blocks []Block, derived ...Derived) (*Staged, error) {
	j.mu.Lock()
	at, fence := j.tip, j.fence
	j.mu.Unlock()
	st := &Staged{entries: make([]protocol.Entry, len(drafts)), batch: Batch{Derived: derived, Fence: fence}}
	st.batch.Blocks = append(make([]Block, 0, len(blocks)+len(drafts)+1), blocks...)
	events := make([]Block, len(drafts))
	move := Move{Name: j.name, Old: at.CID, TS: now, Events: make([]EventRef, 0, len(drafts))}
	for i, d := range drafts {
		e, texts, err := d.event(at, now)
		if err != nil {
			return nil, fmt.Errorf("event %d of %s: %w", at.Seq+1, j.what, err)
		}
		st.batch.Blocks = append(st.batch.Blocks, texts...)
		st.entries[i], events[i] = e, Block{e.CID, e.Raw}
		at = EventRef{e.Seq, e.CID}
		move.Events = append(move.Events, at)
	}
	// Events side by side: a reader of a journal of many texts unpacks fewer, and larger, segments.
	st.batch.Blocks = append(st.batch.Blocks, events...)
	if len(drafts) > 0 {
		move.New = at.CID
		st.batch.Moves = []Move{move}
		for i := range derived {
			if !derived[i].Head.Defined() {
				derived[i].Head = at.CID // known only now
			}
		}
		if run, ok := strings.CutPrefix(j.name, protocol.RunHead("")); ok && !move.Old.Defined() {
			st.batch.Derived = append(derived[:len(derived):len(derived)], derivedOwn(protocol.RunID(run), move.Events[0]))
		}
	}
	var err error
	if st.commit, err = j.s.Ready(st.batch.Blocks); err != nil {
		return nil, fmt.Errorf("journal of %s: %w", j.what, err)
	}
	j.mu.Lock()
	j.tip = at
	j.mu.Unlock()
	return st, nil
}

// With has heads that are no journal moved in the transaction of the events: all of it is stored, or nothing. Their
// blocks are among those of Stage. There is at least one event.
func (st *Staged) With(moves ...Move) { st.batch.Moves = append(st.batch.Moves, moves...) }

// Stands has the store note with the events where runs are behind them.
func (st *Staged) Stands(runs ...Standing) { st.batch.Runs = append(st.batch.Runs, runs...) }

// Entries are the events.
func (st *Staged) Entries() []protocol.Entry { return st.entries }

// Blocks are those that are written with the events, these included.
func (st *Staged) Blocks() []Block { return st.batch.Blocks }

// AllOf is what was staged in several journals, each its first events and under no claim, as one batch: all of it is stored, or nothing.
func AllOf(all []*Staged) (b Batch) {
	for _, st := range all {
		b.Blocks, b.Derived = append(b.Blocks, st.batch.Blocks...), append(b.Derived, st.batch.Derived...)
		b.Moves, b.Runs = append(b.Moves, st.batch.Moves...), append(b.Runs, st.batch.Runs...)
	}
	return b
}

// Commit writes what was staged in one transaction, in the order of staging and with nothing
// left out. It returns the events once they are on disk.
//
// An error is one of Append, and then nothing of it is stored. All that is staged is void with
// it: the journal goes on from its head.
func (j *Journal) Commit(ctx context.Context, st *Staged) ([]protocol.Entry, error) {
	err := st.commit(ctx, st.batch)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.tip = j.head
		return nil, fmt.Errorf("journal of %s: %w", j.what, err)
	}
	if n := len(st.entries); n > 0 {
		j.head = EventRef{st.entries[n-1].Seq, st.entries[n-1].CID}
	}
	return st.entries, nil
}
