package notify

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

// ProjectSink is the name of the journal of a sink that a project names: apart from the user's of the same name.
func ProjectSink(name string) string { return "project/" + name }

// A journal is that of a sink, with what it adds up to. Its owner holds mu.
type journal struct {
	name  string
	store Store
	chain *cas.Chain

	mu     sync.Mutex
	st     *State
	kept   protocol.Seq                    // of the stored state
	passed map[protocol.RunID]protocol.Seq // how far runs were looked at beyond the cursors of st
	events protocol.Seq                    // in passed
}

// cursor is the newest event of a run that was looked at. The caller holds mu.
func (j *journal) cursor(run protocol.RunID) protocol.Seq {
	return max(j.st.Cursor(run), j.passed[run])
}

// pass notes that a run was looked at without a finding. What is noted is recorded when it is much, so that not
// every event of a run costs one here; after a crash it is looked at again. The caller holds mu.
func (j *journal) pass(run protocol.RunID, to protocol.Seq) {
	if from := j.cursor(run); to > from {
		j.passed[run], j.events = to, j.events+to-from
	}
}

const (
	passedRuns   = 256
	passedEvents = 20_000
)

// passing are drafts of what was passed, where there is enough of it.
func (j *journal) passing(least int) []cas.Draft {
	if len(j.passed) < least && j.events < passedEvents || len(j.passed) == 0 {
		return nil
	}
	return []cas.Draft{{Data: protocol.CursorMoved{Runs: cursors(j.passed)}}}
}

// openJournal reads the journal of a sink: from its stored state on, where there is a good one.
func openJournal(ctx context.Context, s Store, name string) (*journal, error) {
	chain, err := cas.OpenSink(s, name)
	if err != nil {
		return nil, err
	}
	j := &journal{name: name, store: s, chain: chain, passed: map[protocol.RunID]protocol.Seq{}}
	return j, j.open(ctx)
}

func (j *journal) open(ctx context.Context) error {
	j.st, j.kept = nil, 0
	if d, sealed, err := j.store.Derived(ctx, protocol.NotifyHead(j.name)); err == nil && sealed {
		if st, err := Restore(d.Data, d.Head, j.payload(ctx)); err == nil && j.has(ctx, st) {
			j.st, j.kept = st, st.Seq
		}
	}
	if j.st == nil {
		j.st = NewState(j.payload(ctx))
	}
	return j.st.Fold(j.chain.After(ctx, j.st.Seq))
}

// payload reads long texts; it holds no context that ends.
func (j *journal) payload(ctx context.Context) func(protocol.Link) ([]byte, error) {
	ctx = context.WithoutCancel(ctx)
	return func(l protocol.Link) ([]byte, error) { return protocol.ReadPayload(ctx, j.store, l) }
}

// has reports whether the event of a stored state is still in the journal.
func (j *journal) has(ctx context.Context, st *State) bool {
	for e, err := range j.chain.After(ctx, st.Seq-1) {
		return err == nil && e.CID == st.Head
	}
	return false
}

// catchUp reads what others have appended. The caller holds mu.
func (j *journal) catchUp(ctx context.Context) error {
	h, err := j.store.Head(ctx, protocol.NotifyHead(j.name))
	if err != nil || h.Link == j.st.Head {
		return err
	}
	if h.Seq <= j.st.Seq { // an older copy of the store was put back
		return j.open(ctx)
	}
	err = j.st.Fold(j.chain.After(ctx, j.st.Seq))
	if errors.Is(err, protocol.ErrHeadMoved) {
		return j.open(ctx)
	}
	return err
}

// append adds the events that decide gives by the state as it is; where another process was faster it is asked
// again. The caller holds mu.
func (j *journal) append(ctx context.Context, now time.Time, decide func(*State) []cas.Draft) error {
	ctx = context.WithoutCancel(ctx)
	for {
		drafts := decide(j.st)
		entries, err := j.chain.Append(ctx, now.UnixMicro(), cas.EventRef{Seq: j.st.Seq, CID: j.st.Head}, drafts)
		if errors.Is(err, protocol.ErrHeadMoved) {
			if err = j.catchUp(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("journal of the sink %s: %w", j.name, err)
		}
		for _, e := range entries {
			if err := j.st.Apply(e); err != nil {
				return err
			}
			if e.Type == protocol.EvCursorMoved {
				clear(j.passed)
				j.events = 0
			}
		}
		return nil
	}
}

// Refold holds the stored state of a sink against its journal, up to the event seq that it belongs to. Where there is
// no stored state it is the same.
func Refold(ctx context.Context, s Store, name string) (seq protocol.Seq, same bool, err error) {
	chain, err := cas.OpenSink(s, name)
	if err != nil {
		return 0, false, err
	}
	j := &journal{name: name, store: s, chain: chain}
	d, _, err := s.Derived(ctx, protocol.NotifyHead(name))
	if err != nil || !d.Head.Defined() {
		return 0, true, err
	}
	stored, err := Restore(d.Data, d.Head, j.payload(ctx))
	if err != nil {
		return 0, true, nil // of another version: it is made anew
	}
	st := NewState(j.payload(ctx))
	for e, err := range chain.After(ctx, 0) {
		if err == nil {
			err = st.Apply(e)
		}
		if err != nil {
			return 0, false, err
		}
		if e.Seq == stored.Seq {
			break
		}
	}
	a, err := stored.Snapshot()
	if err != nil {
		return 0, false, err
	}
	b, err := st.Snapshot()
	return stored.Seq, bytes.Equal(a, b) && st.Head == d.Head, err
}

// snapshotEvery is the least number of events behind a stored state to make another one, while a process delivers.
const snapshotEvery = 1024

// keep stores the state, if that is worth its cost. It is derived: nothing is lost without it. The caller holds mu.
func (j *journal) keep(ctx context.Context, least int) error {
	behind := int(j.st.Seq - j.kept)
	if behind < least || 8*behind < len(j.st.cursors)+j.st.open {
		return nil
	}
	data, err := j.st.Snapshot()
	if err == nil {
		err = j.store.Commit(context.WithoutCancel(ctx), cas.Batch{Derived: []cas.Derived{{Key: protocol.NotifyHead(j.name), Head: j.st.Head, Data: data}}})
	}
	if err != nil && !errors.Is(err, protocol.ErrReadOnly) {
		return fmt.Errorf("the state of the sink %s was not kept, the next look reads its journal: %w", j.name, err)
	}
	j.kept = j.st.Seq
	return nil
}

// Open begins the journals of sinks that have none yet: what the runs of the store have recorded by now fires
// nothing.
func Open(ctx context.Context, s Store, now time.Time, names []string) error {
	for _, name := range names {
		chain, err := cas.OpenSink(s, name)
		if err != nil {
			return err
		}
		h, err := s.Head(ctx, protocol.NotifyHead(name))
		if err != nil {
			return err
		}
		if h.Link.Defined() {
			continue
		}
		heads, err := s.Heads(ctx, protocol.RunHead(""))
		if err != nil {
			return err
		}
		_, err = chain.Append(ctx, now.UnixMicro(), cas.EventRef{}, []cas.Draft{{Data: protocol.SinkOpened{Origin: rand.Text(), Runs: cursorText(heads)}}})
		if err != nil && !errors.Is(err, protocol.ErrHeadMoved) { // then another process has begun it
			return fmt.Errorf("journal of the sink %s: %w", name, err)
		}
	}
	return nil
}

// PassOver has the events that runs hold by now fire nothing, at any sink: the runs came from elsewhere, and are
// taken over.
func PassOver(ctx context.Context, s Store, now time.Time, heads []cas.Head) error {
	names, err := cas.Sinks(ctx, s)
	if err != nil || len(heads) == 0 {
		return err
	}
	for _, name := range names {
		j, err := openJournal(ctx, s, name)
		if err == nil {
			err = j.append(ctx, now, func(*State) []cas.Draft { return []cas.Draft{{Data: protocol.CursorMoved{Runs: cursorText(heads)}}} })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func cursorText(heads []cas.Head) protocol.Text {
	runs := make(map[protocol.RunID]protocol.Seq, len(heads))
	for _, h := range heads {
		runs[protocol.RunOf(h.Name)] = h.Seq
	}
	return cursors(runs)
}

func cursors(runs map[protocol.RunID]protocol.Seq) protocol.Text {
	raw, err := protocol.CanonicalJSON(runs)
	if err != nil {
		panic("notify: names and numbers are no JSON: " + err.Error())
	}
	return protocol.NewText(string(raw))
}
