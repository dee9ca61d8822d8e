package agentkit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/memory"
	"wf/protocol"
)

// The work of one long visit is reflected on and remembered as a conversation is, once however
// often its compaction is tried.
func TestB05TheWorkOfAVisitIsReflectedOnBeforeItIsCompacted(t *testing.T) {
	const reflection = `
  - {reflection: true, tool: remember, args: {content: "File r is long.", important: true}}
  - {reflection: true, text: done}
`
	stop := 0
	for ; ; stop++ {
		s := working(t, 1, `coder#1:
  - {tool: read, args: {n: 2000}, usage: {input: 900}}
  - {tool: read, args: {n: 40}, usage: {input: 32001}}
`+reflection+reflection+`
  - {summary: "Two files hold r."}
  - {text: Done., usage: {input: 2000}}
`)
		m, ledger := s.mind(t, protocol.MemorySpec{NoRecall: true})
		j := &journal{stop: stop}
		_, err := s.perform(t, j)
		killed := errors.Is(err, errKilled)
		if killed {
			j.stop = 0
			_, err = s.perform(t, j)
		}
		if err != nil {
			t.Fatalf("killed at %d: %v", stop, err)
		}
		if d := cmp.Diff([]string{"remembered", "remembered"}, ledger.Types()); d != "" {
			t.Errorf("killed at %d: %s", stop, d)
		}
		hits, err := m.Recall(t.Context(), memory.Query{Tags: []string{SummaryTag}, Limit: 10})
		if err != nil || len(hits) != 1 || hits[0].Content.S != "Two files hold r." || hits[0].Step != "coder#1" {
			t.Errorf("killed at %d: the summary is remembered as %+v, %v", stop, hits, err)
		}
		if d := find[protocol.Compacted](j); len(d) != 1 || d[0].Scope != protocol.ScopeVisit || !d[0].Error.Empty() {
			t.Errorf("killed at %d: %+v", stop, d)
		}
		// The visit reads its summary, and nothing of the reflection.
		last := sentMessages(t, s.sent[len(s.sent)-1])
		if all := strings.Join(contentsOf(last), "\n"); !strings.Contains(all, "Two files hold r.") || strings.Contains(all, "File r is long.") {
			t.Errorf("killed at %d: sent %q", stop, all)
		}
		if stop > 0 && !killed {
			break
		}
	}
	if stop < 8 {
		t.Errorf("killed at %d places alone", stop)
	}
}
