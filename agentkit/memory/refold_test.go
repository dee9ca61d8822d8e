package memory_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
)

// What a memory keeps of itself agrees with its journal, also when it was kept from a kept state.
func TestAKeptMemoryAgreesWithItsJournal(t *testing.T) {
	vectors := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l := &memorytest.Ledger{}
		for range 2 {
			m, err := memory.Open(t.Context(), memory.Config{Scope: "test", Journal: l, Vectors: vectors})
			if err != nil {
				t.Fatal(err)
			}
			changeSome(t, m, rapid.IntRange(1, 8).Draw(t, "changes"))
			if err := memory.KeepNow(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			changeSome(t, m, rapid.IntRange(0, 3).Draw(t, "more changes"))
			data, head, ok := l.Snapshot(t.Context())
			if f, err := memory.Refold(t.Context(), l, data, head); !ok || f != nil || err != nil {
				t.Fatalf("%t, %+v, %v", ok, f, err)
			}
		}
	})
}

// F-42: what was edited in a kept memory is found by its journal.
func TestAnEditedMemoryIsFoundByItsJournal(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	remember(t, m, "the door is shut", "ada")
	remember(t, m, "the key is under the mat", "ada")
	st, err := memory.Fold(s.ledger.After(t.Context(), 0))
	if err != nil {
		t.Fatal(err)
	}
	data := memory.SnapshotOf(st, embed.LexicalName)
	if f, err := memory.Refold(t.Context(), s.ledger, data, st.Head); f != nil || err != nil {
		t.Fatalf("as it was kept: %+v, %v", f, err)
	}
	edited := []byte(strings.Replace(string(data), "ada", "bob", 1)) // the tag of both
	f, err := memory.Refold(t.Context(), s.ledger, edited, st.Head)
	if err != nil || f == nil || f.What != "memory 1" || !strings.Contains(f.Kept, "bob") || !strings.Contains(f.Journal, "ada") {
		t.Fatalf("%+v, %v", f, err)
	}
}
