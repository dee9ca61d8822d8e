package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"wf/cas"
	"wf/protocol"
)

// SnapshotAgrees folds a journal whole, and again with a snapshot in the middle, and compares
// what follows from both after every further event.
func SnapshotAgrees(entries []protocol.Entry, cut int, read Reader) error {
	lib := &Library{}
	whole, err := Fold(lib, each(entries[:cut]), read)
	if err != nil {
		return err
	}
	data, err := whole.Snapshot()
	if err != nil {
		return err
	}
	again, err := restore(lib, data, read)
	if err != nil {
		return err
	}
	full := newState(read) // never pruned by a snapshot
	if err := full.FoldMore(lib, each(entries[:cut])); err != nil {
		return err
	}
	for i := cut; i <= len(entries); i++ {
		want, err := full.Next()
		if err != nil {
			return err
		}
		for name, s := range map[string]*State{"restored": again, "pruned": whole} {
			got, err := s.Next()
			if err != nil {
				return err
			}
			if a, b := asJSON(want), asJSON(got); a != b {
				return fmt.Errorf("after event %d the %s state plans\n%s\nnot\n%s", i, name, b, a)
			}
		}
		if i == len(entries) {
			break
		}
		for _, s := range []*State{full, whole, again} {
			if err := s.FoldMore(lib, each(entries[i:i+1])); err != nil {
				return err
			}
		}
	}
	a, err := full.Snapshot()
	if err != nil {
		return err
	}
	b, err := again.Snapshot()
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("the snapshots at the end differ")
	}
	return nil
}

// DrivenAgrees compares the snapshot that the driver left at the end of a journal with what a
// fold of the journal gives.
func DrivenAgrees(ctx context.Context, e *Engine, run protocol.RunID, entries []protocol.Entry) error {
	d, ok, err := e.Store.Derived(ctx, snapshotKey(run))
	if err != nil || !ok || d.Head != entries[len(entries)-1].CID {
		return err // another process wrote last
	}
	folded, err := Fold(&Library{}, each(entries), e.reader(ctx))
	if err != nil {
		return err
	}
	want, err := folded.Snapshot()
	if err != nil {
		return err
	}
	var a, b snapshot
	if err := errors.Join(cas.Decode(want, &a), cas.Decode(d.Data, &b)); err != nil {
		return err
	}
	if x, y := asJSON(a), asJSON(b); x != y {
		return fmt.Errorf("the driver left the state\n%s\nand its journal gives\n%s", y, x)
	}
	return nil
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func each(entries []protocol.Entry) func(func(protocol.Entry, error) bool) {
	return func(yield func(protocol.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// RetryAt says when a further attempt is due.
func RetryAt(r *protocol.Retry, class string, attempt int, now int64) (due int64, ok bool) {
	return retryAt(r, class, attempt, now)
}

// FormatOfFork is the format of messages that a fork of s with another definition pins, if s
// itself has the format origin.
func FormatOfFork(s *State, origin int) int {
	begun, forked := *s.begun, *s
	begun.start.Format, forked.begun = origin, &begun
	return forked.formatOfFork()
}

// Folded is how many events of a run are folded to learn its state: those behind its snapshot.
func Folded(ctx context.Context, e *Engine, run protocol.RunID) (int, error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return 0, err
	}
	return int(s.Seq - s.stored.seq), nil
}

// RecordsAtRest are the numbers of records that are kept of runs which are not driven.
func RecordsAtRest(e *Engine) map[protocol.RunID]int {
	out := map[protocol.RunID]int{}
	for _, x := range e.pasts.list {
		out[x.run] = x.past.records.Len()
	}
	return out
}

// ForgetState drops the snapshot of a run.
func ForgetState(ctx context.Context, e *Engine, run protocol.RunID) error {
	return e.Store.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: snapshotKey(run)}}})
}
