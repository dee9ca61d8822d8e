package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// A StateFault is a stored state of a run that says something else than its journal: it was edited,
// or a wf wrote it wrongly. What reads the run would go on from it.
type StateFault struct {
	Seq     protocol.Seq // of the event that the state belongs to
	Field   string       // the first one that differs
	Journal string       // its value by the journal, JSON, shortened
	Stored  string       // and as it is stored
}

// Refold folds the journal of a run from its first event up to the one that its stored state belongs
// to, and compares both. It gives nil where they agree, and where there is none. One that another key
// sealed is compared as well: no drive goes on from it, and it tells that somebody wrote it.
func (e *Engine) Refold(ctx context.Context, run protocol.RunID) (*StateFault, error) {
	d, _, err := e.Store.Derived(ctx, snapshotKey(run))
	if err != nil || !d.Head.Defined() {
		return nil, err
	}
	var stored rules.Snapshot
	if cas.Decode(d.Data, &stored) != nil || !stored.Readable() || !e.onBranch(ctx, run, d.Head, stored.Seq) {
		return nil, nil
	}
	journal, err := rules.Refold(e.records(ctx), upTo(e.Store.After(ctx, run, 0), stored.Seq), &stored)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	field, want, have, err := differs(journal, &stored)
	if err != nil || field == "" {
		return nil, err
	}
	return &StateFault{stored.Seq, field, want, have}, nil
}

// DropState removes the stored state of a run; the next look folds its journal.
func (e *Engine) DropState(ctx context.Context, run protocol.RunID) error {
	return e.Store.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: snapshotKey(run)}}})
}

// differs names the first field in which two snapshots differ.
func differs(want, have *rules.Snapshot) (field, wanted, had string, err error) {
	x, errX := fieldsOf(want)
	y, errY := fieldsOf(have)
	if err := errors.Join(errX, errY); err != nil {
		return "", "", "", err
	}
	names := slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y)))
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(x[name], y[name]) {
			wanted, had = aroundDifference(x[name], y[name])
			return name, wanted, had, nil
		}
	}
	return "", "", "", nil
}

// fieldsOf are the fields of a snapshot by their names in the store, in JSON.
func fieldsOf(s *rules.Snapshot) (map[string][]byte, error) {
	var fields map[string]any
	data, err := cas.Marshal(s)
	if err == nil {
		err = cas.Decode(data, &fields)
	}
	out := make(map[string][]byte, len(fields))
	for name, value := range fields {
		if err == nil {
			out[name], err = json.Marshal(value)
		}
	}
	return out, err
}

// differenceMax is how many bytes of a field are shown around the place where it differs.
const differenceMax = 120

// aroundDifference shortens two texts to what is around their first difference.
func aroundDifference(a, b []byte) (string, string) {
	at := sharedPrefix(a, b)
	show := func(s []byte) string {
		from, to := max(0, at-differenceMax/2), min(len(s), at+differenceMax/2)
		if len(s) <= differenceMax {
			from, to = 0, len(s)
		}
		out := string(bytes.ToValidUTF8(s[min(from, to):to], nil))
		if from > 0 {
			out = "…" + out
		}
		if to < len(s) {
			out += "…"
		}
		return out
	}
	return show(a), show(b)
}

// sharedPrefix is how many bytes two texts have in common at their beginnings.
func sharedPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
