package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
	"wf/protocol"
)

func sortedIDs[V any](m map[protocol.Seq]V) []protocol.Seq { return slices.Sorted(maps.Keys(m)) }

// fits reports whether tags have the asked ones.
func fits(tags, asked []string, mode memory.Mode) bool {
	if len(asked) == 0 {
		return true
	}
	has := func(t string) bool { return slices.Contains(tags, t) }
	if mode == memory.All {
		return !slices.ContainsFunc(asked, func(t string) bool { return !has(t) })
	}
	return slices.ContainsFunc(asked, has)
}

func TestAMemoryIsWhatItsEventsSay(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	first := remember(t, m, "one", "a", "b")
	second := remember(t, m, "two")
	if first != 1 || second != 2 {
		t.Fatalf("ids are %d and %d, not the seqs of their events", first, second)
	}
	tags, pinned, text := []string{"c"}, true, "uno"
	got, err := m.Edit(t.Context(), first, memory.Edit{Content: &text, Tags: &tags, Pinned: &pinned}, memory.Origin{By: "ada"})
	if err != nil || got.Content.S != "uno" || !got.Pinned || !cmp.Equal(got.Tags, tags) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := m.Edit(t.Context(), first, memory.Edit{Content: &text, Tags: &tags, Pinned: &pinned}, memory.Origin{}); err != nil {
		t.Error(err)
	}
	if err := m.SetAnchor(t.Context(), "Be brief.", memory.Origin{}); err != nil {
		t.Error(err)
	}
	if err := m.SetAnchor(t.Context(), "Be kind.", memory.Origin{}); err != nil {
		t.Error(err)
	}
	if _, err := m.Edit(t.Context(), second, memory.Edit{Remove: true}, memory.Origin{}); err != nil {
		t.Error(err)
	}
	want := []string{"remembered", "remembered", "edited", "tagged", "pinned", "remembered", "remembered", "removed"}
	if d := cmp.Diff(want, s.ledger.Types()); d != "" {
		t.Errorf("what was so already is written again, or something is missing: %s", d)
	}
	// Another process sees the same.
	err = s.open(t, "").View(t.Context(), func(st *memory.State) {
		if a, ok := st.Anchor(); !ok || a.Content.S != "Be kind." || a.ID != 7 {
			t.Errorf("the anchor is %+v", a)
		}
		if pins := st.Pins(); len(pins) != 1 || pins[0].ID != first {
			t.Errorf("pinned: %+v", pins)
		}
		if st.Len() != 2 {
			t.Errorf("%d memories", st.Len())
		}
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := m.Edit(t.Context(), second, memory.Edit{Pinned: &pinned}, memory.Origin{}); !errors.Is(err, protocol.ErrMemory) {
		t.Errorf("editing what is removed: %v", err)
	}
}

func TestTwoWritersOfOneScopeBothKeepTheirs(t *testing.T) {
	s := newStage(t)
	stores := []*memory.Store{s.open(t, ""), s.open(t, "")}
	var wg sync.WaitGroup
	for i, m := range stores {
		wg.Go(func() {
			for range 100 {
				if _, err := m.Remember(t.Context(), memory.Note{Content: string(rune('a' + i))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, m := range stores {
		counts := map[string]int{}
		err := m.View(t.Context(), func(st *memory.State) {
			for x := range st.Newest() {
				counts[x.Content.S]++
			}
		})
		if err != nil || counts["a"] != 100 || counts["b"] != 100 {
			t.Errorf("%v %v", counts, err)
		}
	}
}

func TestAChangeThatIsRepeatedAfterACrashIsMadeOnce(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	note := memory.Note{Content: "once", Origin: memory.Origin{By: "coder", Run: "r", Step: "coder#1", Key: memory.KeyOf("step", "call_1")}}
	s.ledger.Killed = true
	if _, err := m.Remember(t.Context(), note); !errors.Is(err, memorytest.ErrKilled) {
		t.Fatal(err)
	}
	s.ledger.Killed = false
	again := s.open(t, "")
	ids, err := again.Remember(t.Context(), note)
	if err != nil || ids[0] != 1 || len(s.ledger.Entries()) != 1 {
		t.Errorf("ids %v, %d events, %v", ids, len(s.ledger.Entries()), err)
	}
	pin := true
	o := memory.Origin{Key: memory.KeyOf("step", "call_2")}
	for range 2 {
		if _, err := again.Edit(t.Context(), 1, memory.Edit{Pinned: &pin}, o); err != nil {
			t.Error(err)
		}
	}
	unpin := false
	if _, err := again.Edit(t.Context(), 1, memory.Edit{Pinned: &unpin}, memory.Origin{}); err != nil {
		t.Error(err)
	}
	if x, err := again.Edit(t.Context(), 1, memory.Edit{Pinned: &pin}, o); err != nil || x.Pinned {
		t.Errorf("a repeated change undoes a later one: %+v %v", x, err)
	}
}

func TestBadContentsAreToldOrPutRight(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	megabyte := strings.Repeat("x", 1_000_000)
	id := remember(t, m, megabyte, "big")
	hits, err := m.Recall(t.Context(), memory.Query{Text: "x", Tags: []string{"big"}})
	if err != nil || len(hits) != 1 || hits[0].ID != id {
		t.Fatalf("%v %v", hits, err)
	}
	if text, err := m.Text(t.Context(), hits[0].Memory); err != nil || text != megabyte {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for _, bad := range []string{"", " \n", strings.Repeat("x", protocol.MemoryMax+1)} {
		if _, err := m.Remember(t.Context(), memory.Note{Content: bad}); !errors.Is(err, protocol.ErrMemory) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	remember(t, m, "broken \xff\xfe text", "a\xffb", `say "x", y`, "  two   words ", "TWO WORDS", "")
	err = m.View(t.Context(), func(st *memory.State) {
		for x := range st.Newest() {
			if x.Content.S != "broken \ufffd text" || !cmp.Equal(x.Tags, []string{"a\ufffdb", `say "x", y`, "two words"}) {
				t.Errorf("%q %q", x.Content.S, x.Tags)
			}
			if l := memory.TagList(x.Tags); l != `a`+"\ufffd"+`b,"say \"x\", y",two words` {
				t.Errorf("written %s", l)
			}
			break
		}
	})
	if err != nil {
		t.Error(err)
	}
	if got := recalled(t, m, memory.Query{Tags: []string{`say "x", y`}}); len(got) != 1 {
		t.Errorf("by a tag with quotes and a comma: %v", got)
	}
}

func TestTagsThatDoNotFitAreToldAndNotCut(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	id := remember(t, m, "kept", strings.Repeat("é", memory.TagMax))
	var many []string
	for i := range memory.TagsMax + 1 {
		many = append(many, fmt.Sprint("tag ", i))
	}
	for _, test := range []struct {
		tags []string
		want string
	}{
		{[]string{strings.Repeat("é", memory.TagMax+1)}, "of 101 characters is too long"},
		{many, "33 tags are too many"},
	} {
		if _, err := m.Remember(t.Context(), memory.Note{Content: "x", Tags: test.tags}); !errors.Is(err, protocol.ErrMemory) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("remembered: %v", err)
		}
		if _, err := m.Edit(t.Context(), id, memory.Edit{Tags: &test.tags}, memory.Origin{}); !errors.Is(err, protocol.ErrMemory) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("changed: %v", err)
		}
	}
	// As a question they only find nothing.
	if got := recalled(t, m, memory.Query{Tags: []string{strings.Repeat("é", memory.TagMax+1)}}); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	if got := recalled(t, m, memory.Query{Tags: append(many, strings.Repeat("é", memory.TagMax))}); !cmp.Equal(got, []protocol.Seq{id}) {
		t.Errorf("by one of many: %v", got)
	}
}

func TestKeysAreHiddenBeforeTheyAreKept(t *testing.T) {
	const key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	s := newStage(t)
	m := s.open(t, "")
	id := remember(t, m, "The token is "+key+".", key)
	if err := m.SetAnchor(t.Context(), key, memory.Origin{}); err != nil {
		t.Fatal(err)
	}
	text := "now " + key
	if _, err := m.Edit(t.Context(), id, memory.Edit{Content: &text}, memory.Origin{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.ledger.Entries() {
		if strings.Contains(string(e.Data), key) || !strings.Contains(string(e.Data), "[redacted:") {
			t.Errorf("event %d holds %q", e.Seq, e.Data)
		}
	}
}

func TestTheAnchorStaysPinnedAndWithoutTags(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	if err := m.SetAnchor(t.Context(), "I stand in front.", memory.Origin{}); err != nil {
		t.Fatal(err)
	}
	no, yes, none := false, true, []string{}
	for _, e := range []memory.Edit{{Pinned: &no}, {Tags: &[]string{"x"}}} {
		if _, err := m.Edit(t.Context(), 1, e, memory.Origin{}); !errors.Is(err, protocol.ErrMemory) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if _, err := m.Edit(t.Context(), 1, memory.Edit{Pinned: &yes, Tags: &none}, memory.Origin{}); err != nil || len(s.ledger.Entries()) != 1 {
		t.Errorf("what is so already: %v, %v", s.ledger.Types(), err)
	}
	if _, err := m.Edit(t.Context(), 1, memory.Edit{Remove: true}, memory.Origin{}); err != nil {
		t.Error(err)
	}
}
