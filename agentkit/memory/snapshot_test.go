package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
	"wf/protocol"
)

// shown is all that can be asked of a state, but the texts.
func shown(st *memory.State) []string {
	out := []string{fmt.Sprint(st.Seq, st.Head, st.Model, st.Len())}
	line := func(what string, m memory.Memory) {
		place := ""
		if m.Place != nil {
			place = fmt.Sprint(*m.Place)
		}
		out = append(out, fmt.Sprintf("%s %d %x %v %v %q %s %d %d %s %s %s", what, m.ID, m.Sum(), m.Tags, m.Pinned, m.Special, place, m.At, m.Changed, m.By, m.Run, m.Step))
	}
	for m := range st.Newest() {
		line("memory", m)
	}
	for _, m := range st.Pins() {
		line("pinned", m)
	}
	if a, ok := st.Anchor(); ok {
		line("anchor", a)
	}
	for _, tag := range []string{"a", "b", "c"} {
		for _, m := range st.ContextFor([]string{tag, "a"}, memory.All, 100) {
			line("tagged "+tag, m)
		}
	}
	return out
}

// changeSome makes random changes of a memory.
func changeSome(t *rapid.T, m *memory.Store, n int) {
	ctx := t.Context()
	tags := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "B", "c"}), 0, 3)
	for range n {
		var ids []protocol.Seq
		if err := m.View(ctx, func(st *memory.State) {
			for x := range st.Newest() {
				if x.Special == "" {
					ids = append(ids, x.ID)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("word ", rapid.SampledFrom([]int{1, 2, 300}).Draw(t, "words")) + fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "text"))
		place := rapid.SampledFrom([]*protocol.MemoryPlace{nil, {File: "x.go", Line: 1, End: 9}, {File: "y.go", Line: 3, End: 4}}).Draw(t, "place")
		var err error
		if len(ids) == 0 || rapid.Bool().Draw(t, "new") {
			_, err = m.Remember(ctx, memory.Note{Content: text, Tags: tags.Draw(t, "tags"), Pinned: rapid.Bool().Draw(t, "pin"), Place: place,
				Origin: memory.Origin{By: "ada", Run: "R", Step: "coder#1", Key: rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "key")}})
		} else {
			e := memory.Edit{Remove: rapid.IntRange(0, 4).Draw(t, "remove") == 0}
			if !e.Remove {
				e.Place = place
				if rapid.Bool().Draw(t, "edit") {
					e.Content = &text
				}
				some := tags.Draw(t, "tags")
				e.Tags = &some
			}
			_, err = m.Edit(ctx, rapid.SampledFrom(ids).Draw(t, "of"), e, memory.Origin{})
		}
		if err == nil && rapid.IntRange(0, 9).Draw(t, "anchor") == 0 {
			err = m.SetAnchor(ctx, text, memory.Origin{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A state that went through a snapshot, and on through what was said since, is the one that the
// whole journal gives; and its store finds and reads the same.
func TestAMemoryFromASnapshotIsTheOneFromItsJournal(t *testing.T) {
	vectors := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l := &memorytest.Ledger{}
		open := func() *memory.Store {
			m, err := memory.Open(t.Context(), memory.Config{Scope: "test", Journal: l, Vectors: vectors})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := open()
		changeSome(t, m, rapid.IntRange(1, 12).Draw(t, "before"))
		first, err := memory.Fold(l.After(t.Context(), 0))
		if err != nil {
			t.Fatal(err)
		}
		l.KeepSnapshot(t.Context(), memory.SnapshotOf(first, embed.LexicalName), first.Head)
		changeSome(t, m, rapid.IntRange(0, 6).Draw(t, "after"))

		lent := open()
		whole, err := memory.Fold(l.After(t.Context(), 0))
		if err != nil {
			t.Fatal(err)
		}
		same := func(when string) {
			t.Helper()
			var got []string
			if err := lent.View(t.Context(), func(st *memory.State) { got = shown(st) }); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(shown(whole), got); d != "" {
				t.Fatalf("%s: %s", when, d)
			}
		}
		same("from the snapshot")
		q := memory.Query{Text: "word 3", Limit: 100}
		want, err := m.Recall(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lent.Recall(t.Context(), q)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d hits of %d, %v", len(got), len(want), err)
		}
		for i := range want {
			a, aerr := m.Text(t.Context(), want[i].Memory)
			b, berr := lent.Text(t.Context(), got[i].Memory)
			if a != b || aerr != nil || berr != nil || want[i].ID != got[i].ID || *want[i].Distance != *got[i].Distance {
				t.Fatalf("hit %d is memory %d %.40q at %v, want %d %.40q at %v; %v %v", i, got[i].ID, b, *got[i].Distance, want[i].ID, a, *want[i].Distance, aerr, berr)
			}
		}
		changeSome(t, lent, 3)
		if whole, err = memory.Fold(l.After(t.Context(), 0)); err != nil {
			t.Fatal(err)
		}
		same("after further changes")
	})
}

func TestADamagedSnapshotIsNotRead(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	remember(t, m, "one", "a")
	remember(t, m, strings.Repeat("long ", 400), "b")
	st, err := memory.Fold(s.ledger.After(t.Context(), 0))
	if err != nil {
		t.Fatal(err)
	}
	whole := memory.SnapshotOf(st, embed.LexicalName)
	if again, err := memory.Restored(st, embed.LexicalName); err != nil || !slices.Equal(shown(again)[1:], shown(st)[1:]) {
		t.Errorf("the snapshot itself: %v", err)
	}
	for n := range whole {
		if _, err := memory.RestoredFrom(whole[:n]); err == nil {
			t.Errorf("%d bytes of %d were read as a snapshot", n, len(whole))
		}
		flipped := slices.Clone(whole)
		flipped[n] ^= 0xff
		_, _ = memory.RestoredFrom(flipped) // may be another one, and must not panic: the store keeps a checksum
	}
	for name, head := range map[string]protocol.Link{"of another head": s.ledger.Entries()[0].CID, "of none": {}} {
		s.ledger.KeepSnapshot(t.Context(), whole, head)
		if got := recalled(t, s.open(t, ""), memory.Query{Tags: []string{"b"}}); !cmp.Equal(got, []protocol.Seq{2}) {
			t.Errorf("a snapshot %s: found %v", name, got)
		}
	}
}

// A long memory is read from its snapshot: a question reads its hits, and what asks for all texts
// reads the journal once.
func TestALongMemoryIsNotReadForEachQuestion(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "axes")
	const n = 3000
	notes := make([]memory.Note, n)
	for i := range notes {
		notes[i] = memory.Note{Content: fmt.Sprintf("memory %d a=1 b=%d", i, i), Place: &protocol.MemoryPlace{File: fmt.Sprint(i % 7)}}
	}
	if _, err := m.Remember(t.Context(), notes...); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Reindex(t.Context(), "", memory.Origin{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	*s.axes.asked = nil
	before := s.ledger.Read()
	again := s.open(t, "axes")
	hits, err := again.Recall(t.Context(), memory.Query{Text: "a=1 b=17", Limit: 3})
	if err != nil || len(hits) != 3 || hits[0].ID != 18 {
		t.Fatal(hits, err)
	}
	if text, err := again.Text(t.Context(), hits[0].Memory); err != nil || text != "memory 17 a=1 b=17" {
		t.Errorf("its text is %q, %v", text, err)
	}
	if read := s.ledger.Read() - before; read > 5 {
		t.Errorf("%d of %d events were read", read, n)
	}
	if d := cmp.Diff([]string{"a=1 b=17"}, *s.axes.asked); d != "" {
		t.Errorf("vectors were made anew: %s", d)
	}
	var all []memory.Memory
	if err := again.View(t.Context(), func(st *memory.State) { all = slices.Collect(st.Newest()) }); err != nil {
		t.Fatal(err)
	}
	before = s.ledger.Read()
	for i, x := range all {
		if text, err := again.Text(t.Context(), x); err != nil || text != notes[n-1-i].Content {
			t.Fatalf("text %d is %q, %v", i, text, err)
		}
	}
	if read := s.ledger.Read() - before; read > n+2*memory.MaxHits {
		t.Errorf("all texts took %d events, there are %d", read, n)
	}
	other := s.open(t, "")
	if made, err := other.Reindex(t.Context(), embed.LexicalName, memory.Origin{}, nil); err != nil || made != n {
		t.Errorf("with another model %d vectors were made, %v", made, err)
	}
}
