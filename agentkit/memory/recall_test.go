package memory_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
	"wf/agentkit/model"
	"wf/protocol"
)

func TestB02TheOnlyMemoryWithTheTagIsFoundHoweverFarItIs(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "axes")
	notes := make([]memory.Note, 10_000)
	for i := range notes {
		notes[i] = memory.Note{Content: fmt.Sprintf("memory %d a=1 b=%d", i, i), Tags: []string{"crowd", fmt.Sprint("n", i%100)}}
	}
	notes[4_321] = memory.Note{Content: "the farthest a=-1", Tags: []string{"rare", "crowd"}}
	ids, err := m.Remember(t.Context(), notes...)
	if err != nil {
		t.Fatal(err)
	}
	if got := recalled(t, m, memory.Query{Text: "a=1", Tags: []string{"rare"}}); !cmp.Equal(got, ids[4_321:4_322]) {
		t.Errorf("by the rare tag: %v", got)
	}
	hits, err := m.Recall(t.Context(), memory.Query{Text: "a=1", Limit: 100})
	if err != nil || len(hits) != 100 || hits[0].ID != ids[0] || *hits[0].Distance != 0 {
		t.Fatalf("without tags: %d hits, %v", len(hits), err)
	}
	for i := 1; i < len(hits); i++ {
		if *hits[i].Distance < *hits[i-1].Distance {
			t.Fatalf("hit %d is nearer than the one before", i)
		}
	}
	all, err := m.Recall(t.Context(), memory.Query{Text: "a=1", Tags: []string{"rare", "n7"}, Limit: 100})
	if err != nil || len(all) != 100 || all[0].ID != ids[7] {
		t.Errorf("one of two tags: %d hits, %v", len(all), err)
	}
	if got := recalled(t, m, memory.Query{Text: "a=1", Tags: []string{"rare", "crowd"}, Mode: memory.All}); !cmp.Equal(got, ids[4_321:4_322]) {
		t.Errorf("both tags: %v", got)
	}
	byTag := recalled(t, m, memory.Query{Tags: []string{"CROWD"}})
	if len(byTag) != memory.DefaultContext || byTag[0] != ids[9_999] || byTag[19] != ids[9_980] {
		t.Errorf("by tag alone: %v", byTag)
	}
}

func TestDistancesLieBetweenTheSameAndTheOpposite(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "axes")
	same, apart, opposite, none := remember(t, m, "a=2 b=2"), remember(t, m, "c=1"), remember(t, m, "a=-3 b=-3"), remember(t, m, "no direction")
	hits, err := m.Recall(t.Context(), memory.Query{Text: "a=1 b=1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		id  protocol.Seq
		far float64
	}{{same, 0}, {none, 1}, {apart, 1}, {opposite, 2}}
	for i, w := range want {
		if hits[i].ID != w.id || math.Abs(*hits[i].Distance-w.far) > 1e-6 {
			t.Errorf("hit %d: memory %d at %v, want %d at %v", i, hits[i].ID, *hits[i].Distance, w.id, w.far)
		}
	}
	if got := recalled(t, m, memory.Query{Text: "a=1 b=1", Within: 0.3}); !cmp.Equal(got, []protocol.Seq{same}) {
		t.Errorf("within 0.3: %v", got)
	}
}

func TestATextIsEmbeddedOnceForAllStoresAndScopes(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "axes")
	remember(t, m, "a=1")
	remember(t, m, "b=1")
	if len(*s.axes.asked) != 0 {
		t.Error("remembering asks the model")
	}
	recalled(t, m, memory.Query{Text: "c=1"})
	again := &stage{ledger: &memorytest.Ledger{}, dir: s.dir, axes: s.axes}
	other := again.open(t, "axes")
	remember(t, other, "b=1")
	recalled(t, other, memory.Query{Text: "d=1"})
	if d := cmp.Diff([]string{"a=1", "b=1", "c=1", "d=1"}, *s.axes.asked); d != "" {
		t.Error(d)
	}
}

func TestAModelThatIsDownLosesNothing(t *testing.T) {
	s := newStage(t)
	down := &model.Error{Class: model.Unavailable, Message: "embeddings at http://127.0.0.1:1/v1: connection refused", Err: protocol.ErrModel}
	s.axes.err = down
	m := s.open(t, "axes")
	id := remember(t, m, "a=1", "x")
	if _, err := m.Recall(t.Context(), memory.Query{Text: "a=1"}); !errors.Is(err, protocol.ErrModel) || !errors.Is(err, error(down)) {
		t.Errorf("recall: %v", err)
	} else if hint := protocol.HintOf(err); !strings.Contains(hint, "wf memory reindex --scope "+m.Scope()+" --model "+embed.LexicalName) {
		t.Errorf("it says to do %q", hint)
	}
	if got := recalled(t, m, memory.Query{Tags: []string{"x"}}); !cmp.Equal(got, []protocol.Seq{id}) {
		t.Errorf("by tag: %v", got)
	}
	s.axes.err = nil
	if got := recalled(t, s.open(t, "axes"), memory.Query{Text: "a=1"}); !cmp.Equal(got, []protocol.Seq{id}) {
		t.Errorf("when it is back: %v", got)
	}
}

func TestAModelThatChangesItsDimensionIsToldAndReindexed(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "axes")
	id := remember(t, m, "a=1")
	recalled(t, m, memory.Query{Text: "a=1"})
	s.axes.dim = 6
	changed := s.open(t, "axes")
	if _, err := changed.Recall(t.Context(), memory.Query{Text: "a=1"}); !errors.Is(err, embed.ErrDimension) || protocol.HintOf(err) == "" {
		t.Errorf("recall: %v", err)
	}
	remember(t, changed, "f=1")
	if n, err := changed.Reindex(t.Context(), "", memory.Origin{}, nil); err != nil || n != 2 {
		t.Fatalf("reindex made %d: %v", n, err)
	}
	// So does one that was open all the time.
	for _, m := range []*memory.Store{changed, s.open(t, "axes")} {
		if got := recalled(t, m, memory.Query{Text: "a=1", Limit: 1}); !cmp.Equal(got, []protocol.Seq{id}) {
			t.Errorf("recalled %v", got)
		}
	}
}

func TestAnotherModelIsToldUntilTheMemoryIsReindexed(t *testing.T) {
	s := newStage(t)
	id := remember(t, s.open(t, "axes"), "a=1")
	other := s.open(t, "axes/two")
	if _, err := other.Recall(t.Context(), memory.Query{Text: "a=1"}); !errors.Is(err, protocol.ErrEmbedding) {
		t.Errorf("recall: %v", err)
	}
	if _, err := other.Reindex(t.Context(), "axes/two", memory.Origin{By: "ada"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := recalled(t, other, memory.Query{Text: "a=1"}); !cmp.Equal(got, []protocol.Seq{id}) {
		t.Errorf("recalled %v", got)
	}
	if name, err := s.open(t, "").Model(t.Context()); err != nil || name != "axes/two" {
		t.Errorf("the memory has %s, %v", name, err)
	}
	if d := cmp.Diff([]string{"remembered", "indexed"}, s.ledger.Types()); d != "" {
		t.Error(d)
	}
}

// What is recalled is what measuring everything gives, whatever was changed before.
func TestRecallAgreesWithMeasuringEverything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStage(t)
		m := s.open(t, "axes")
		type known struct {
			text string
			tags []string
		}
		all := map[protocol.Seq]known{}
		tag := rapid.SampledFrom([]string{"x", "Y", "z, \"q\""})
		text := rapid.Custom(func(rt *rapid.T) string {
			return fmt.Sprintf("a=%d b=%d c=%d", rapid.IntRange(-2, 2).Draw(rt, "a"), rapid.IntRange(-2, 2).Draw(rt, "b"), rapid.IntRange(-2, 2).Draw(rt, "c"))
		})
		for range rapid.IntRange(1, 30).Draw(rt, "changes") {
			switch k := rapid.IntRange(0, 5).Draw(rt, "change"); {
			case k < 3 || len(all) == 0:
				n := known{text.Draw(rt, "text"), rapid.SliceOfNDistinct(tag, 0, 3, rapid.ID).Draw(rt, "tags")}
				all[remember(t, m, n.text, n.tags...)] = n
			default:
				id := rapid.SampledFrom(sortedIDs(all)).Draw(rt, "id")
				e, n := memory.Edit{}, all[id]
				switch k {
				case 3:
					n.text = text.Draw(rt, "text")
					e.Content = &n.text
				case 4:
					n.tags = rapid.SliceOfNDistinct(tag, 0, 3, rapid.ID).Draw(rt, "tags")
					e.Tags = &n.tags
				case 5:
					e.Remove = true
				}
				if _, err := m.Edit(t.Context(), id, e, memory.Origin{}); err != nil {
					rt.Fatal(err)
				}
				if all[id] = n; e.Remove {
					delete(all, id)
				}
			}
			if rapid.Bool().Draw(rt, "ask meanwhile") {
				recalled(t, m, memory.Query{Text: "a=1"})
			}
		}
		tags := rapid.SliceOfNDistinct(tag, 0, 3, rapid.ID).Draw(rt, "asked tags")
		mode := rapid.SampledFrom([]memory.Mode{memory.Any, memory.All}).Draw(rt, "mode")
		hits, err := m.Recall(t.Context(), memory.Query{Text: "a=1 b=2", Tags: tags, Mode: mode, Limit: 100})
		if err != nil {
			rt.Fatal(err)
		}
		want := 0
		for _, n := range all {
			if fits(n.tags, tags, mode) {
				want++
			}
		}
		if len(hits) != want {
			rt.Fatalf("%d hits, %d fit", len(hits), want)
		}
		query, _ := s.axes.EmbedQuery(t.Context(), "a=1 b=2")
		last := -1.0
		for _, h := range hits {
			v, _ := s.axes.EmbedQuery(t.Context(), all[h.ID].text)
			if far := cosine(query, v); math.Abs(far-*h.Distance) > 1e-6 || *h.Distance < last || !fits(all[h.ID].tags, tags, mode) {
				rt.Fatalf("memory %d (%v) at %v, want %v, after %v", h.ID, all[h.ID], *h.Distance, far, last)
			}
			last = *h.Distance
		}
	})
}

// cosine is the distance of two vectors, plainly.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return 1 - ab/math.Sqrt(aa*bb)
}
