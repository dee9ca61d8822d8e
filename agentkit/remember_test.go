package agentkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
	"wf/agentkit/model"
	"wf/agentkit/prompt"
	"wf/agentkit/prompt/prompttest"
	"wf/protocol"
)

// near embeds a text by how close it says it is: "near=0.9" has the cosine 0.9 to every text
// that says nothing.
type near struct{ err error }

func (n near) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		cos := float32(1)
		if _, rest, ok := strings.Cut(text, "near="); ok {
			if _, err := fmt.Sscan(rest, &cos); err != nil {
				return nil, err
			}
		}
		out[i] = []float32{cos, sqrt(1 - cos*cos)}
	}
	return out, n.err
}

func sqrt(x float32) float32 {
	r := x
	for range 50 {
		if r == 0 {
			return 0
		}
		r = (r + x/r) / 2
	}
	return r
}

func (n near) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	out, err := n.EmbedDocuments(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// mind gives a stage a memory, with what is in it.
func (s *stage) mind(t testing.TB, spec protocol.MemorySpec, notes ...memory.Note) (*memory.Store, *memorytest.Ledger) {
	t.Helper()
	ledger := &memorytest.Ledger{}
	m, err := memory.Open(t.Context(), memory.Config{Scope: "role/flow/coder", Journal: ledger, Vectors: t.TempDir(), Model: "near",
		Embed: func(string) (embed.Embedder, error) { return near{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := m.Remember(t.Context(), notes...); err != nil {
		t.Fatal(err)
	}
	s.turn.Role.Memory, s.turn.Key = &spec, "step key"
	s.agent.Memory = func(context.Context, protocol.Turn) (*memory.Store, error) { return m, nil }
	return m, ledger
}

func (s *stage) prepared(t testing.TB) (tools []string, inject string) {
	t.Helper()
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := offered(p.Tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range offer {
		tools = append(tools, o.Name)
	}
	return tools, p.Inject
}

func TestB01RecalledMemoriesComeAfterTheStablePrefix(t *testing.T) {
	s := newStage(t, `coder#1: [{text: "x"}]`)
	s.mind(t, protocol.MemorySpec{},
		memory.Note{Content: "far near=0.69", Tags: []string{"no"}},
		memory.Note{Content: "edge near=0.701", Tags: []string{"a", "b, c"}},
		memory.Note{Content: "close near=0.9", Tags: []string{"a"}},
		memory.Note{Content: "closer near=0.95"},
		memory.Note{Content: "closest near=0.99"})
	s.turn.EdgePrompt = "What do you know?"
	tools, inject := s.prepared(t)
	if d := cmp.Diff(memory.Names, tools); d != "" {
		t.Errorf("tools: %s", d)
	}
	want := "[recalled memory] [id:5] [tags:]\nclosest near=0.99\n\n" +
		"[recalled memory] [id:4] [tags:]\ncloser near=0.95\n\n" +
		"[recalled memory] [id:3] [tags:a]\nclose near=0.9"
	if d := cmp.Diff(want, inject); d != "" {
		t.Errorf("the three nearest: %s", d)
	}
	s.turn.Role.Memory = &protocol.MemorySpec{TopK: 10}
	if _, inject = s.prepared(t); !strings.HasSuffix(inject, "[recalled memory] [id:2] [tags:a,\"b, c\"]\nedge near=0.701") {
		t.Errorf("within 0.3: %s", inject)
	}
	s.turn.Role.Memory = &protocol.MemorySpec{TopK: 10, Distance: "0.02"}
	if _, inject = s.prepared(t); inject != "[recalled memory] [id:5] [tags:]\nclosest near=0.99" {
		t.Errorf("within 0.02: %s", inject)
	}
	s.turn.Role.Memory = &protocol.MemorySpec{NoRecall: true}
	if _, inject = s.prepared(t); inject != "" {
		t.Errorf("unasked: %s", inject)
	}

	// In the request they stand at the very tail; the prefix does not know them.
	with, without := prompttest.PingPong(3), prompttest.PingPong(3)
	with.Visit.Inject = want
	a, b := built(t, with), built(t, without)
	if d := cmp.Diff(b[:len(b)-1], a[:len(a)-1]); d != "" {
		t.Errorf("the prefix: %s", d)
	}
	if a[len(a)-1].Content != b[len(b)-1].Content+"\n\n"+want {
		t.Errorf("the tail: %q", a[len(a)-1].Content)
	}
}

func TestB03APinChangesTheNextEpochAndNotTheCurrentPrefix(t *testing.T) {
	s := newStage(t, `coder#1: [{text: "x"}]`)
	m, _ := s.mind(t, protocol.MemorySpec{NoRecall: true}, memory.Note{Content: "known", Pinned: true, Tags: []string{"a"}}, memory.Note{Content: "new"})
	if err := m.SetAnchor(t.Context(), "You are the keeper.", memory.Origin{}); err != nil {
		t.Fatal(err)
	}
	opening := "[anchor memory]\nYou are the keeper.\n\n[pinned memory] [id:1] [tags:a]\nknown"
	if _, inject := s.prepared(t); inject != opening {
		t.Errorf("the first visit begins with %q", inject)
	}
	before := prompttest.PingPong(2)
	before.Past[1].Inject = opening
	pin := true
	if _, err := m.Edit(t.Context(), 2, memory.Edit{Pinned: &pin}, memory.Origin{}); err != nil {
		t.Fatal(err)
	}
	s.turn.Visit = 2
	_, inject := s.prepared(t)
	if inject != "" {
		t.Errorf("the second visit says %q of a pin", inject)
	}
	next := prompttest.PingPong(3)
	next.Past[1].Inject = opening
	if p := prompt.Compare(prompt.Bytes(prompttest.Tools, built(t, before)), prompt.Bytes(prompttest.Tools, built(t, next))); !p.Whole() {
		t.Errorf("a pin broke the prefix at %s", p.Part)
	}
	for name, turn := range map[string]func(){
		"a new conversation": func() { s.turn.Visit = 1 },
		"a task":             func() { s.turn.Visit, s.turn.Role.Context = 7, protocol.ContextTask },
	} {
		turn()
		remembered, err := s.agent.remembered(t.Context(), s.turn)
		if err != nil || remembered != opening+"\n\n[pinned memory] [id:2] [tags:]\nnew" {
			t.Errorf("%s begins with %q, %v", name, remembered, err)
		}
	}
}

func TestAMemoryToolIsJournaledAndRepeatedAfterACrash(t *testing.T) {
	replies := `coder#1: [{tool: remember, args: {content: The build needs Go 1.26., tags: [build]}}, {text: "---\nstatus: done\n---\nNoted."}]`
	stop := 0
	for ; ; stop++ {
		s := newStage(t, replies)
		_, ledger := s.mind(t, protocol.MemorySpec{})
		p, err := s.agent.Prepare(t.Context(), s.turn)
		if err != nil {
			t.Fatal(err)
		}
		s.turn.History.Tools = p.Tools
		j := &journal{stop: stop}
		_, err = s.perform(t, j)
		killed := errors.Is(err, errKilled)
		if killed {
			j.stop = 0
			if _, err = s.perform(t, j); err != nil {
				t.Fatalf("killed at %d: %v", stop, err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"remembered"}, ledger.Types()); d != "" {
			t.Errorf("killed at %d: %s", stop, d)
		}
		e := ledger.Entries()[0]
		changed := find[protocol.MemoryChanged](j)
		if len(changed) == 0 || changed[0] != (protocol.MemoryChanged{Scope: "role/flow/coder", Head: e.CID.String()}) || e.StepName() != "coder#1" {
			t.Errorf("killed at %d: journaled %v", stop, changed)
		}
		if got := find[protocol.ToolResult](j); len(got) != 1 || got[0].Content.S != "remembered as 1" || got[0].IsError {
			t.Errorf("killed at %d: %+v", stop, got)
		}
		if stop > 0 && !killed {
			break
		}
	}
	if stop < 4 {
		t.Errorf("killed at %d places alone", stop)
	}
}

func TestB05AReflectionHasItsOwnContextAndSixTurnsAtMost(t *testing.T) {
	reflection := `{reflection: true, tool: remember, args: {content: "Ada likes brief answers. near=0.1", important: true, tags: [ada]}}`
	endless := strings.Repeat(`{reflection: true, tool: list_memories}, `, 10)
	s := later(t, 4, `coder#4: [`+reflection+`, `+endless+`{summary: "Three tries failed."}, {text: Done.}]`)
	m, ledger := s.mind(t, protocol.MemorySpec{}, memory.Note{Content: "known near=0.2", Pinned: true})
	s.turn.LastUsage = 32_001
	j := &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	turns := 0
	for _, u := range find[protocol.Usage](j) {
		if u.Kind == protocol.UsageReflection {
			turns++
			if u.Input == nil || *u.Input == 0 {
				t.Errorf("a turn is counted as %+v", u)
			}
		}
	}
	if turns != ReflectionTurns {
		t.Errorf("%d turns", turns)
	}
	own := sentMessages(t, s.sent[0])
	if len(own) != 2 || !strings.HasPrefix(own[0].Content, "You look after the memory") ||
		!strings.Contains(own[1].Content, "> The tests fail, round 3.") || !strings.Contains(own[1].Content, "Pinned:\n[id:1] [tags:] [pinned] known") {
		t.Errorf("its context is %q", contentsOf(own))
	}
	// Neither the summary nor the visit is sent anything of it.
	for _, sent := range s.sent[turns:] {
		if strings.Contains(sent, "You look after") || strings.Contains(sent, "list_memories") {
			t.Errorf("the reflection is sent on: %s", sent)
		}
	}
	drafts := find[protocol.CompactionDraft](j)
	want := "[pinned memory] [id:1] [tags:]\nknown near=0.2\n\n[pinned memory] [id:2] [tags:ada]\nAda likes brief answers. near=0.1"
	if len(drafts) != 1 || drafts[0].Inject != want {
		t.Fatalf("after it stands %+v", drafts)
	}
	last := sentMessages(t, s.sent[len(s.sent)-1])
	if !strings.Contains(last[1].Content, "Three tries failed.\n\n"+want) {
		t.Errorf("the next request says %q", last[1].Content)
	}
	hits, err := m.Recall(t.Context(), memory.Query{Tags: []string{SummaryTag}, Limit: 10})
	if err != nil || len(hits) != 1 || !strings.HasSuffix(hits[0].Content.S, "Three tries failed.") {
		t.Errorf("the summary is remembered as %+v, %v", hits, err)
	}
	if d := cmp.Diff([]string{"remembered", "remembered", "remembered"}, ledger.Types()); d != "" {
		t.Error(d)
	}
	if got := len(find[protocol.MemoryChanged](j)); got != 2 {
		t.Errorf("%d changes are journaled", got)
	}
}

func TestACompactionThatIsTriedAgainRemembersNothingTwice(t *testing.T) {
	replies := `coder#4: [{reflection: true, tool: remember, args: {content: Once.}}, {reflection: true, text: done}, ` +
		`{reflection: true, tool: remember, args: {content: Once.}}, {reflection: true, text: done}, {summary: "Three tries failed."}, {text: Done.}]`
	for stop := 1; stop < 4; stop++ {
		s := later(t, 4, replies)
		_, ledger := s.mind(t, protocol.MemorySpec{})
		s.turn.LastUsage = 32_001
		j := &journal{stop: stop}
		if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
			t.Fatalf("killed at %d: %v", stop, err)
		}
		j.stop = 0
		if _, err := s.perform(t, j); err != nil {
			t.Fatalf("killed at %d: %v", stop, err)
		}
		if d := cmp.Diff([]string{"remembered", "remembered"}, ledger.Types()); d != "" {
			t.Errorf("killed at %d: %s", stop, d)
		}
	}
}

func TestACompactionDoesNotFailForAReflection(t *testing.T) {
	for name, c := range map[string]struct{ replies, why string }{
		"no reply":   {`coder#4: [{summary: "Three tries failed."}, {text: Done.}]`, "no reply for coder#4, reflection 1"},
		"an error":   {`coder#4: [{reflection: true, error: {status: 400, message: no}}, {summary: "Three tries failed."}, {text: Done.}]`, "status 400"},
		"wrong tool": {`coder#4: [{reflection: true, tool: shell}, {reflection: true, text: done}, {summary: "Three tries failed."}, {text: Done.}]`, ""},
		"nothing":    {`coder#4: [{reflection: true, text: done}, {summary: "Three tries failed."}, {text: Done.}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := later(t, 4, c.replies)
			s.mind(t, protocol.MemorySpec{})
			s.turn.LastUsage = 32_001
			j := &journal{}
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			x := find[protocol.CompactionDraft](j)[0].Compacted
			if x.Model == "" || !strings.Contains(x.Error.S, c.why) || c.why == "" && x.Error.S != "" {
				t.Errorf("the compaction says %q of %s", x.Error.S, x.Model)
			}
		})
	}
}

func TestAModelOfVectorsThatIsDownSuspendsTheVisitBeforeItBegins(t *testing.T) {
	s := newStage(t, `coder#1: [{text: "x"}]`)
	s.mind(t, protocol.MemorySpec{}, memory.Note{Content: "x"})
	down := &model.Error{Class: model.Unavailable, Message: "embeddings at http://127.0.0.1:1/v1: refused", Err: protocol.ErrModel}
	m, err := memory.Open(t.Context(), memory.Config{Scope: "s", Journal: &memorytest.Ledger{}, Vectors: t.TempDir(), Model: "near",
		Embed: func(string) (embed.Embedder, error) { return near{err: down}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Remember(t.Context(), memory.Note{Content: "x"}); err != nil {
		t.Fatal(err)
	}
	s.agent.Memory = func(context.Context, protocol.Turn) (*memory.Store, error) { return m, nil }
	s.turn.EdgePrompt = "Go on."
	if _, err := s.agent.Prepare(t.Context(), s.turn); protocol.CodeOf(err) != protocol.ErrModel.Code || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Error(err)
	}
}

func TestARoleWithoutAMemoryIsToldWhereTheToolIsNamed(t *testing.T) {
	s := newStage(t, `coder#1: [{text: "x"}]`)
	s.turn.Role.Tools = []string{"remember"}
	if _, err := s.agent.Prepare(t.Context(), s.turn); err == nil || !strings.Contains(err.Error(), "memory: true") {
		t.Error(err)
	}
}
