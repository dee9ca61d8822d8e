package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/protocol"
)

func TestAnExtractOfAnExtractStaysSmall(t *testing.T) {
	text := strings.Repeat("word ", 4000)
	for range 5 {
		text = extractPast([]protocol.Message{
			{Role: protocol.RoleUser, Content: pastHeading + "\n\n" + text}, {Role: protocol.RoleAssistant, Content: strings.Repeat("x", 9000)},
			{Role: protocol.RoleUser, Content: strings.Repeat("y", 9000)}, {Role: protocol.RoleAssistant, Content: strings.Repeat("z", 9000)},
		}, 2000)
		if n := len([]rune(text)); n > 2200 || !strings.HasPrefix(text, "word") || !strings.Contains(text, "zzz") {
			t.Fatalf("%d runes: %.80s…", n, text)
		}
	}
}

func TestB04ACallIsNeverSplitFromItsResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &Work{}
		id := 0
		for range rapid.IntRange(1, 8).Draw(t, "replies") {
			reply := protocol.Message{Role: protocol.RoleAssistant, Content: "said"}
			var after []protocol.Message
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				id++
				call := fmt.Sprint(id)
				reply.ToolCalls = append(reply.ToolCalls, protocol.CallMessage{ID: call})
				after = append(after, protocol.Message{Role: protocol.RoleTool, ToolCallID: call})
			}
			if len(after) == 0 || rapid.Bool().Draw(t, "told") {
				after = append(after, protocol.Message{Role: protocol.RoleUser, Content: "told"})
			}
			w.tail = append(append(w.tail, reply), after...)
		}
		n := rapid.IntRange(1, len(repliesIn(w.tail))).Draw(t, "replaced")
		whole := w.tail
		w.tail = w.replaced(n, "summary")
		open := map[string]bool{}
		for _, m := range w.tail {
			if m.ToolCallID != "" && !open[m.ToolCallID] {
				t.Fatalf("the result of %s has no call: %v", m.ToolCallID, w.tail)
			}
			delete(open, m.ToolCallID)
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		}
		if len(open) > 0 || w.tail[0].Role != protocol.RoleAssistant || w.tail[1].Role != protocol.RoleUser {
			t.Fatalf("calls without results %v: %v", open, w.tail)
		}
		kept := w.tail[2:]
		if d := cmp.Diff(whole[len(whole)-len(kept):], append([]protocol.Message{}, kept...)); d != "" {
			t.Fatal(d)
		}
	})
}

// compactAt puts Compactions between the visits of a conversation, as the engine would.
func compactAt(t *rapid.T, list []protocol.Past) []protocol.Past {
	out := append([]protocol.Past(nil), list...)
	for i := range list {
		p := &out[i]
		if !p.Resumes.Defined() || rapid.IntRange(0, 2).Draw(t, "compact") > 0 {
			continue
		}
		chain, err := conversationOf((*protocol.Records)(nil).With(out...), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(chain.visits) == 0 {
			continue
		}
		covers := rapid.IntRange(0, len(chain.visits)-1).Draw(t, "covers")
		c := protocol.Past{CID: link(fmt.Sprint("compaction", i)), Role: p.Role, Inject: rapid.SampledFrom([]string{"", "recalled"}).Draw(t, "inject"),
			Compaction: &protocol.PastCompaction{Prior: p.Resumes, Covers: chain.visits[covers].CID, Summary: fmt.Sprint("summary ", i)}}
		p.Resumes = c.CID
		out = append(out, c)
	}
	return out
}

func TestW02PrefixOfRandomConversationsWithCompactions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := compactAt(t, drawDAG(t))
		byCID := map[protocol.Link]protocol.Past{}
		for _, p := range list {
			byCID[p.CID] = p
		}
		build := func(p protocol.Past) []protocol.Message {
			m, err := BuildMessages(protocol.History{Format: 1, Role: p.Role, System: "s", Inputs: protocol.JSON(`{"x":"1"}`), Visit: p, Past: list})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		for _, p := range list {
			if p.Compaction != nil || !p.Resumes.Defined() {
				continue
			}
			now, before := build(p), byCID[p.Resumes]
			if before.Compaction == nil {
				if c := Compare(Bytes(tools, build(before)), Bytes(tools, now)); !c.Whole() {
					t.Fatalf("%s#%d does not begin with the prompt before: %d of %d", p.Role, p.Visit, c.Shared, c.Of)
				}
				continue
			}
			// A compaction leaves the newest messages byte for byte as they were, behind its summary.
			p.Resumes = before.Compaction.Prior
			want := build(p)
			want = append(want[:1:1], want[len(want)-len(now)+1:]...)
			summary := before.Compaction.Summary + "\n\n"
			if before.Inject != "" {
				summary += before.Inject + "\n\n"
			}
			if now[1].Content == strings.TrimSpace(summary) && want[1].Content == "(continue)" {
				now[1].Content = summary + "(continue)"
			}
			want[1].Content = summary + want[1].Content
			if d := cmp.Diff(want, now); d != "" {
				t.Fatalf("%s#%d: %s", p.Role, p.Visit, d)
			}
		}
	})
}

func TestACompactedConversationMatchesItsGoldenFile(t *testing.T) {
	h := golden()
	first := h.Visit.Resumes
	c := protocol.Past{CID: link("compaction"), Role: "developer", Inject: "[recalled memory]\n[id: 7] calc rounds half to even",
		Compaction: &protocol.PastCompaction{Prior: first, Covers: first, Summary: pastHeading + "\n\nThe plan was built once;\nthe reviewer wants <tests>."}}
	h.Past = append(h.Past, c)
	h.Visit.Resumes = c.CID
	got := Bytes(tools, h.build(t))
	pinned(t, 1, "-compaction", got)
}
