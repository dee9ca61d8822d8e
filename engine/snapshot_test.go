package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// snapshotAgrees folds a journal whole, and again with a snapshot in the middle, and compares
// what follows from both after every further event.
func snapshotAgrees(entries []protocol.Entry, cut int, read engine.Reader) error {
	from := engine.Records(read)
	whole, err := rules.Fold(from, each(entries[:cut]))
	if err != nil {
		return err
	}
	data, err := cas.Marshal(whole.Snapshot())
	if err != nil {
		return err
	}
	var stored rules.Snapshot
	if err := cas.Decode(data, &stored); err != nil {
		return err
	}
	again, err := stored.Restore(from)
	if err != nil {
		return err
	}
	full, err := rules.Fold(from, each(entries[:cut])) // never pruned by a snapshot
	if err != nil {
		return err
	}
	for i := cut; i <= len(entries); i++ {
		want, err := full.Next()
		if err != nil {
			return err
		}
		for name, s := range map[string]*rules.State{"restored": again, "pruned": whole} {
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
		for _, s := range []*rules.State{full, whole, again} {
			if err := s.FoldMore(each(entries[i : i+1])); err != nil {
				return err
			}
		}
	}
	a, err := cas.Marshal(full.Snapshot())
	if err != nil {
		return err
	}
	b, err := cas.Marshal(again.Snapshot())
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

func each(entries []protocol.Entry) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
