package cas

import (
	"errors"
	"testing"

	"wf/protocol"
)

// ownOf asks as a new process does.
func ownOf(t *testing.T, s *Store, state string) error {
	t.Helper()
	return NewPins(s, state).Own(t.Context(), "one")
}

func TestOnlyWhatDescendsFromWhatWasSeenIsOnesOwn(t *testing.T) {
	s, state := openSample(t), t.TempDir()
	j := sampleRun(t, s, "one", 3)
	head, seq := j.Head()
	if err := ownOf(t, s, state); !errors.Is(err, protocol.ErrForeign) {
		t.Fatalf("a run that was never noted: %v", err)
	}
	if err := SeeFound(t.Context(), state, s.Dir(), []Head{{Name: "run/one", Link: head, Seq: seq}}); err != nil {
		t.Fatal(err)
	}
	if err := ownOf(t, s, state); !errors.Is(err, protocol.ErrForeign) {
		t.Fatalf("a run that was only verified: %v", err)
	}
	var first Head
	for e, err := range s.After(t.Context(), "one", 0) {
		if err != nil {
			t.Fatal(err)
		}
		first = Head{Name: "run/one", Link: e.CID, Seq: e.Seq}
		break
	}
	// Two processes were about to begin it; one of them did.
	other := Head{Name: "run/one", Link: Raw([]byte("of the other")).Link, Seq: 1}
	for _, h := range []Head{first, other} {
		if err := NewPins(s, state).Begin(t.Context(), "one", h.Link, h.Seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := ownOf(t, s, state); err != nil {
		t.Fatalf("a run that this user began: %v", err)
	}
	if err := NewPins(s, state).Note(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	w, err := LoadPinnedHeads(state, s.Dir())
	if err != nil || w.Heads["run/one"].Head != head || len(w.Begun) > 0 {
		t.Fatalf("noted %+v, %v", w, err)
	}
	if err := Adopt(t.Context(), state, s.Dir(), []Head{{Name: "run/one", Link: other.Link, Seq: seq + 7}}); err != nil {
		t.Fatal(err)
	}
	if err := ownOf(t, s, state); !errors.Is(err, protocol.ErrRolledBack) {
		t.Fatalf("a run that is older than what was seen of it: %v", err)
	}
	if err := Adopt(t.Context(), state, s.Dir(), []Head{{Name: "run/one", Link: other.Link, Seq: seq}}); err != nil {
		t.Fatal(err)
	}
	if err := ownOf(t, s, state); !errors.Is(err, protocol.ErrForeign) {
		t.Fatalf("a run of another history: %v", err)
	}
}

// A run that did not move costs no look at its events, however many there are.
func TestARunThatDidNotMoveIsNotReadAgain(t *testing.T) {
	s, state := openSample(t), t.TempDir()
	head, seq := sampleRun(t, s, "one", 3).Head()
	p := NewPins(s, state)
	if err := p.Adopt(t.Context(), []Head{{Name: "run/one", Link: head, Seq: seq}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Pins{p, NewPins(s, state)} {
		from, known, err := p.before(Head{Name: "run/one", Link: head, Seq: seq})
		if err != nil || !known || len(from) > 0 {
			t.Errorf("it would be read from %v on, %v", from, err)
		}
	}
}
