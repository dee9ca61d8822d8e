package engine

import (
	"bytes"
	"context"
	"encoding/json"
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
func DrivenAgrees(ctx context.Context, e *Engine, run protocol.RunID) error {
	fault, err := e.Refold(ctx, run)
	if fault != nil {
		err = fmt.Errorf("the driver left a state in which %s is\n%s\nand its journal gives\n%s", fault.Field, fault.Stored, fault.Journal)
	}
	return err
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
	return e.DropState(ctx, run)
}

// EditState has the stored state of a run say something else, as an attacker would: it is sealed
// anew.
func EditState(ctx context.Context, e *Engine, run protocol.RunID, edit func(fields map[string]any)) error {
	d, ok, err := e.Store.Derived(ctx, snapshotKey(run))
	if err != nil || !ok {
		return fmt.Errorf("no stored state: %v", err)
	}
	var s map[string]any
	if err := cas.Decode(d.Data, &s); err != nil {
		return err
	}
	edit(s)
	if d.Data, err = cas.Marshal(s); err != nil {
		return err
	}
	return e.Store.Commit(ctx, cas.Batch{Derived: []cas.Derived{d}})
}
