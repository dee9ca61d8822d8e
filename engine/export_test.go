package engine

import (
	"bytes"
	"encoding/json"
	"fmt"

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
