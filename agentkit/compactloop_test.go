package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/tool"
	"wf/protocol"
)

// reader answers with as many bytes as it is asked for.
var reader = tool.Tool{
	Name: "read", Description: "read", Parameters: protocol.JSON(`{"type":"object"}`), ReadOnly: true,
	Run: func(_ context.Context, _ tool.Workspace, raw json.RawMessage) (tool.Result, error) {
		var args struct{ N int }
		err := json.Unmarshal(raw, &args)
		return tool.Result{Content: strings.Repeat("r", args.N)}, err
	},
}

// working is a stage whose role can read.
func working(t testing.TB, n int, replies string) *stage {
	t.Helper()
	s := later(t, n, replies)
	s.agent.Tools, s.turn.Role.Tools = []tool.Tool{reader}, []string{"read"}
	first := s.turn
	first.Visit, first.History.Tools = 1, ""
	p, err := s.agent.Prepare(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
	return s
}

func TestB04ALoopIsCompactedByItsOwnUsage(t *testing.T) {
	for usage, want := range map[int]bool{32_000: false, 32_001: true} {
		s, j := working(t, 1, fmt.Sprintf(`coder#1:
  - {text: "I read.", tools: [{tool: read, args: {n: 2000}}, {tool: read, args: {n: 3000}}], usage: {input: 900}}
  - {tool: read, args: {n: 40}, usage: {input: %d}}
  - {summary: "Two files hold r."}
  - {text: Done., usage: {input: 2000}}
`, usage)), &journal{}
		if _, err := s.perform(t, j); err != nil {
			t.Fatal(err)
		}
		if got := len(find[protocol.Compacted](j)); got != map[bool]int{true: 1}[want] {
			t.Fatalf("at %d tokens it was compacted %d times", usage, got)
		}
		if !want {
			continue
		}
		d := find[protocol.Compacted](j)[0]
		if d.Scope != protocol.ScopeVisit || d.Replies != 1 || d.TokensBefore != 32_001 || d.Record.Defined() || d.Summary.S != "Two files hold r." {
			t.Errorf("got %+v", d)
		}
		ask, last := sentMessages(t, s.sent[2]), sentMessages(t, s.sent[3])
		if !strings.Contains(ask[len(ask)-1].Content, "and so do your last reply with its results") || len(ask) != 2+3+2+1 {
			t.Errorf("asked in %d messages: %q", len(ask), ask[len(ask)-1].Content)
		}
		var layout []string
		for _, m := range last {
			layout = append(layout, m.Role)
		}
		if d := cmp.Diff([]string{"system", "human", "ai", "human", "ai", "tool"}, layout); d != "" {
			t.Error(d)
		}
		if last[2].Content != "Two files hold r." || last[3].Content != "(The calls and results up to here have been replaced by this summary. Go on.)" || len(last[5].Content) != 40 {
			t.Errorf("got %q", contentsOf(last))
		}
	}
}

func TestALongConversationIsCompactedInsideOfALoop(t *testing.T) {
	s, j := working(t, 5, `coder#5:
  - {tool: read, args: {n: 10}, usage: {input: 33000}}
  - {summary: "Four tries."}
  - {text: Done., usage: {input: 9000}}
`), &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"prompt", "tool_call+usage", "tool_result", "usage+compacted", "prompt", "text+usage"}, j.types()); d != "" {
		t.Error(d)
	}
	last := sentMessages(t, s.sent[2])
	if len(last) != 4 || !strings.Contains(last[1].Content, "Four tries.\n\nThe tests fail, round 5.") || last[3].ToolCallID == "" {
		t.Errorf("got %q", contentsOf(last))
	}
}

func TestB04NothingToFree(t *testing.T) {
	const replies = `coder#1:
  - {tool: read, args: {n: 10}, usage: {input: 32001}}
  - {text: Done., usage: {input: 32001}}
`
	s, j := working(t, 1, replies), &journal{}
	s.turn.Role.Compaction = &protocol.CompactionSpec{Watermark: 32_000}
	_, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "context_full" || !strings.Contains(err.Error(), "holds 32001 tokens, the watermark is 32000") ||
		!strings.Contains(err.Error(), "compaction.watermark of the role coder") {
		t.Fatalf("got %v", err)
	}
	if len(s.sent) != 1 {
		t.Errorf("%d requests were made", len(s.sent))
	}

	// Where the watermark is a guess nobody fails for it.
	s, j = working(t, 1, replies), &journal{}
	if _, err := s.perform(t, j); err != nil || len(find[protocol.Compacted](j)) != 0 {
		t.Errorf("got %v, %v", err, j.types())
	}

	// One try: what did not bring the count down is not tried again.
	s, j = working(t, 1, `coder#1:
  - {tool: read, args: {n: 10}, usage: {input: 10}}
  - {tool: read, args: {n: 10}, usage: {input: 32001}}
  - {tool: read, args: {n: 10}, usage: {input: 32001}}
`), &journal{}
	s.turn.Role.Compaction = &protocol.CompactionSpec{Watermark: 32_000}
	if _, err := s.perform(t, j); !errors.As(err, &f) || f.Code != "context_full" || len(find[protocol.Compacted](j)) != 1 {
		t.Errorf("got %v, %v", err, j.types())
	}
}

// long compacts both its conversation and, twice, its own work.
const long = `coder#5:
  - {tool: read, args: {n: 10}, usage: {input: 33000}}
  - {summary: "Four tries."}
  - {tools: [{tool: read, args: {n: 500}}, {tool: read, args: {n: 600}}], usage: {input: 9000}}
  - {tool: read, args: {n: 20}, usage: {input: 33000}}
  - {tool: read, args: {n: 30}, usage: {input: 1000}}
  - {tool: read, args: {n: 40}, usage: {input: 40000}}
  - {summary: "All was read."}
  - {text: Done., usage: {input: 9000}}
`

func TestAKilledVisitCompactsNothingTwice(t *testing.T) {
	whole, s := &journal{}, working(t, 5, long)
	c, err := s.perform(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(find[protocol.CompactionDraft](whole)) + len(find[protocol.Compacted](whole)); n != 3 {
		t.Fatalf("compacted %d times: %v", n, whole.types())
	}
	for stop := 1; stop < len(whole.commits); stop++ {
		t.Run(fmt.Sprintf("after commit %d", stop), func(t *testing.T) {
			again, j := working(t, 5, long), &journal{stop: stop}
			if _, err := again.perform(t, j); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
			j.stop = 0
			again.turn.History = moved(again.turn.History, j)
			got, err := again.perform(t, j)
			if err != nil {
				t.Fatal(err)
			}
			if *got.Text != *c.Text {
				t.Errorf("concluded %q", *got.Text)
			}
			if d := cmp.Diff(whole.types(), j.types()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(unique(s.sent), unique(again.sent)); d != "" {
				t.Errorf("the requests differ: %s", d)
			}
		})
	}
}

// moved is the history after what a journal compacted, as an engine would rebuild it.
func moved(h protocol.History, j *journal) protocol.History {
	for _, d := range find[protocol.CompactionDraft](j) {
		c := protocol.Past{CID: link("compaction " + d.Summary), Role: h.Role, Inject: d.Inject,
			Compaction: &protocol.PastCompaction{Prior: h.Visit.Resumes, Covers: d.Covers, Summary: d.Summary}}
		h.Past = append(h.Past[:len(h.Past):len(h.Past)], c)
		h.Visit.Resumes = c.CID
	}
	return h
}

func TestAFurtherAttemptKeepsWhatWasCompacted(t *testing.T) {
	s, j := later(t, 4, `coder#4: [{text: no}, {text: no}, {text: no}, {text: "---\nstatus: done\n---\n"}, {summary: "Three tries."}]`), &journal{}
	s.turn.History.Schema, s.turn.LastUsage = answerSchema, 33_000
	if _, err := s.perform(t, j); err == nil {
		t.Fatal("the first attempt worked")
	}
	j.commits = append(j.commits, []protocol.Data{protocol.AttemptFailed{Attempt: 1, Error: protocol.ErrorInfo{Code: "output_invalid"}}})
	s.turn.History, s.turn.Attempt = moved(s.turn.History, j), 2
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if n := len(find[protocol.CompactionDraft](j)); n != 1 {
		t.Errorf("compacted %d times", n)
	}
	if s.sent[4] != s.sent[1] {
		t.Errorf("attempt 2 began with %s", s.sent[4])
	}
}
