package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"wf/protocol"
)

// SnapshotFault is a kept state of a memory that says something else than its journal.
type SnapshotFault struct {
	Seq     protocol.Seq // of the event that the state belongs to
	What    string       // that differs: memory 12, the model
	Journal string       // what the journal gives
	Kept    string       // what is kept
}

// Refold folds a journal up to the event that a snapshot belongs to, and compares both. It gives nil
// where they agree, and for a snapshot that Open would not use.
func Refold(ctx context.Context, j Journal, data []byte, head protocol.Link) (*SnapshotFault, error) {
	kept, err := restored(data, head)
	if errors.Is(err, errSnapshot) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := Fold(upTo(j.After(ctx, 0), kept.Seq))
	if err != nil || s.Head != head || s.Seq != kept.Seq {
		return nil, err
	}
	fault := func(what string, journal, kept any) (*SnapshotFault, error) {
		return &SnapshotFault{s.Seq, what, fmt.Sprint(journal), fmt.Sprint(kept)}, nil
	}
	switch {
	case s.Model != kept.Model:
		return fault("the model", s.Model, kept.Model)
	case s.anchor != kept.anchor:
		return fault("the anchor", s.anchor, kept.anchor)
	case len(s.list) != len(kept.list):
		return fault("the number of memories", len(s.list), len(kept.list))
	case !maps.Equal(s.keys, kept.keys):
		return fault("the keys of changes", len(s.keys), len(kept.keys))
	}
	for i := range s.list {
		if !bytes.Equal(s.list[i].encoded(kept.lender), kept.list[i].encoded(kept.lender)) {
			return fault(fmt.Sprintf("memory %d", s.list[i].ID), s.list[i].words(), kept.list[i].words())
		}
	}
	return nil, nil
}

// encoded is a slot as a snapshot holds it.
func (m *slot) encoded(model string) []byte {
	w := snapshotWriter{at: map[string]uint64{}}
	w.slot(m, model)
	for _, t := range w.texts {
		w.number(uint64(len(t)))
		w.body = append(w.body, t...)
	}
	return w.body
}

// words is a slot for people: without its text, of which a snapshot has the sum alone.
func (m *slot) words() string {
	sum := m.Sum()
	return fmt.Sprintf("memory %d of event %d, removed %t, pinned %t, tags %q, by %q, of %s %s, special %q, text %x…",
		m.ID, m.event, m.gone, m.Pinned, slices.Clone(m.Tags), m.By, m.Run, m.Step, m.Special, sum[:6])
}

// upTo ends a journal after event last.
func upTo(events iter.Seq2[protocol.Entry, error], last protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for e, err := range events {
			if !yield(e, err) || err != nil || e.Seq >= last {
				return
			}
		}
	}
}
