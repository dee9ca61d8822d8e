package agentkit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/prompt"
	"wf/agentkit/prompt/prompttest"
	"wf/protocol"
)

// later is a stage at visit n of a conversation.
func later(t testing.TB, n int, replies string) *stage {
	t.Helper()
	s := newStage(t, replies)
	h := prompttest.PingPong(n)
	h.Tools = prompttest.Tools
	s.turn.History, s.turn.Visit, s.turn.Step.N = h, n, n
	return s
}

// built is P_k of a visit.
func built(t testing.TB, h protocol.History) []protocol.Message {
	t.Helper()
	m, err := prompt.BuildMessages(h)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sentMessages are the roles and texts of a recorded request.
func sentMessages(t testing.TB, request string) []protocol.Message {
	t.Helper()
	var messages []struct {
		Role  string
		Text  string // of a message with no other part
		Parts []struct {
			Text         string
			ToolCall     *struct{ ID string } `json:"tool_call"`
			ToolResponse *struct {
				ToolCallID string `json:"tool_call_id"`
				Content    string
			} `json:"tool_response"`
		}
	}
	if err := json.Unmarshal([]byte(request), &messages); err != nil {
		t.Fatal(err)
	}
	var out []protocol.Message
	for _, m := range messages {
		x := protocol.Message{Role: m.Role, Content: m.Text}
		for _, p := range m.Parts {
			x.Content += p.Text
			if p.ToolCall != nil {
				x.ToolCalls = append(x.ToolCalls, protocol.CallMessage{ID: p.ToolCall.ID})
			}
			if p.ToolResponse != nil {
				x.ToolCallID, x.Content = p.ToolResponse.ToolCallID, p.ToolResponse.Content
			}
		}
		out = append(out, x)
	}
	return out
}

func contentsOf(messages []protocol.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Content)
	}
	return out
}

func TestB04AConversationIsCompactedPastTheWatermarkAndNotAtIt(t *testing.T) {
	for name, c := range map[string]struct {
		usage int64
		role  *protocol.CompactionSpec
		win   int
		want  bool
	}{
		"at the default":                {usage: 32_000},
		"past the default":              {usage: 32_001, want: true},
		"nothing is known":              {usage: 0},
		"at three quarters of a window": {usage: 75_000, win: 100_000},
		"past them":                     {usage: 75_001, win: 100_000, want: true},
		"at the role's own":             {usage: 500, role: &protocol.CompactionSpec{Watermark: 500}, win: 100},
		"past the role's own":           {usage: 501, role: &protocol.CompactionSpec{Watermark: 500}, win: 100_000, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := later(t, 4, `coder#4: [{summary: "Three tries."}, {text: Done.}]`), &journal{}
			s.turn.LastUsage, s.turn.Role.Compaction = c.usage, c.role
			s.agent.Window = func(string) int { return c.win }
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			want := []string{"prompt", "text+usage"}
			if c.want {
				want = append([]string{"usage+compacted"}, want...)
			}
			if d := cmp.Diff(want, j.types()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheSummaryRidesOnTheLivePrefixAndIsAnsweredOnce(t *testing.T) {
	s, j := later(t, 4, `coder#4: [{text: Done.}, {summary: " Three tries failed.\n"}]`), &journal{}
	s.turn.LastUsage = 32_001
	before, err := prompt.BuildMessages(s.turn.History)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.perform(t, j)
	if err != nil || *c.Text != "Done." {
		t.Fatal(c.Text, err)
	}
	ask, first := sentMessages(t, s.sent[0]), sentMessages(t, s.sent[1])
	if d := cmp.Diff(contentsOf(before[:len(before)-1]), contentsOf(ask[:len(ask)-1])); d != "" {
		t.Errorf("the summary is not asked for on what was sent before: %s", d)
	}
	if last := ask[len(ask)-1]; last.Role != "human" || !strings.Contains(last.Content, "Write that summary now. Summarise all of it.") {
		t.Errorf("it is asked %q", last.Content)
	}
	if len(first) != 2 || first[0].Content != "You fix tests." ||
		!strings.HasPrefix(first[1].Content, "## Summary of the conversation so far\n\nThree tries failed.\n\nThe tests fail, round 4.\n\n## What happened since\n\n### test#4") ||
		strings.Contains(first[1].Content, "test#3") {
		t.Errorf("then the prompt is %q", contentsOf(first))
	}
	usage, draft := find[protocol.Usage](j)[0], find[protocol.CompactionDraft](j)[0]
	if usage.Kind != protocol.UsageCompaction || *usage.Input == 0 {
		t.Errorf("the call is counted as %+v", usage)
	}
	if x := draft.Compacted; draft.Covers != link("coder#3") || x.TokensBefore != 32_001 || x.TokensAfter >= x.TokensBefore ||
		x.Model != "script/replies.yaml" || x.Digest != find[protocol.PromptSent](j)[0].Digest {
		t.Errorf("got %+v", draft)
	}
}

func TestHowManyVisitsStayWhole(t *testing.T) {
	for name, c := range map[string]struct {
		visits int
		usage  int64
		role   protocol.CompactionSpec
		want   int
	}{
		"none where they fill more than a quarter": {visits: 4, usage: 32_001, want: 0},
		"as many as fit a quarter":                 {visits: 60, usage: 32_001, want: 9},
		"no more than ten":                         {visits: 200, usage: 32_001, want: 10},
		"as many as the role says":                 {visits: 6, usage: 32_001, role: protocol.CompactionSpec{Keep: 2}, want: 2},
		"but fewer where these pass the watermark": {visits: 6, usage: 101, role: protocol.CompactionSpec{Watermark: 100, Keep: 40}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := later(t, c.visits, fmt.Sprintf(`coder#%d: [{text: Done.}]`, c.visits)), &journal{}
			s.turn.LastUsage, s.turn.Role.Compaction = c.usage, &c.role
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			draft := find[protocol.CompactionDraft](j)[0]
			if want := link(fmt.Sprintf("coder#%d", c.visits-1-c.want)); draft.Covers != want {
				t.Errorf("it covers %s, which is not visit %d", draft.Covers, c.visits-1-c.want)
			}
			if got := len(sentMessages(t, s.sent[len(s.sent)-1])); got != 2+2*c.want {
				t.Errorf("%d messages are sent, want %d", got, 2+2*c.want)
			}
		})
	}
}

func TestWithoutAModelTheSummaryIsAnExtract(t *testing.T) {
	for name, c := range map[string]struct{ replies, why, usage string }{
		"no entry in the script": {`coder#4: [{text: Done.}]`, "no reply for coder#4, summary 1", "prompt"},
		"a failing server":       {`coder#4: [{text: Done.}, {summary: x, error: {status: 503}}]`, "status 503", "usage+compacted"},
		"an empty summary":       {`coder#4: [{text: Done.}, {summary: " \n"}]`, "the summary is empty", "usage+compacted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := later(t, 4, c.replies), &journal{}
			s.turn.LastUsage = 40_000
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			x := find[protocol.CompactionDraft](j)[0]
			if x.Compacted.Model != "" || !strings.Contains(x.Compacted.Error.S, c.why) {
				t.Errorf("got %+v", x.Compacted)
			}
			for _, want := range []string{"The tests fail, round 1.", "package: ./calc", "Asked:\n\n> The tests fail, round 3.", "Answered:\n\n> ---\n> status: done\n> ---\n> Try 3."} {
				if !strings.Contains(x.Summary, want) {
					t.Errorf("the extract lacks %q:\n%s", want, x.Summary)
				}
			}
			if first := j.types()[0]; first != c.usage && first != "compacted" {
				t.Errorf("the first commit is %s", first)
			}
		})
	}
}
