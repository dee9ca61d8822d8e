package agentkit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/protocol"
)

// converseAt performs visits of one conversation in turn, each on what the ones before left, with
// a system prompt of 12 KB. It gives the journal of each visit, and the error that ended them.
func converseAt(t *testing.T, visits int, set func(*stage)) (js []*journal, err error) {
	t.Helper()
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		if isSummary(r) {
			return modeltest.Text("It was tried.")
		}
		return modeltest.Text("Done.")
	})
	var history protocol.History
	usage := int64(0)
	for n := 1; n <= visits; n++ {
		st, j := overWire(t, n, s, wires["openai"]), &journal{}
		h := &st.turn.History
		h.System = strings.Repeat("Be careful. ", 1000)
		if n > 1 { // with what was compacted before
			for _, p := range history.Past {
				if p.Compaction != nil {
					h.Past = append(h.Past, p)
				}
			}
			for i := range h.Past {
				for _, p := range history.Past {
					if h.Past[i].CID == p.CID {
						h.Past[i] = p
					}
				}
				if h.Past[i].CID == link(fmt.Sprintf("coder#%d", n-1)) {
					h.Past[i].Resumes = history.Visit.Resumes
				}
			}
		}
		st.turn.LastUsage = usage
		set(st)
		if _, err = st.perform(t, j); err != nil {
			return append(js, j), err
		}
		history, usage, js = moved(*h, j), 0, append(js, j)
		for _, u := range find[protocol.Usage](j) {
			if u.Kind == protocol.UsageTurn {
				usage = *u.Input
			}
		}
	}
	return js, nil
}

func TestF05AWatermarkBelowWhatStaysIsOneTryAndAClearError(t *testing.T) {
	js, err := converseAt(t, 5, func(s *stage) { s.turn.Role.Compaction = &protocol.CompactionSpec{Watermark: 2500} })
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "context_full" || f.Suspend {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"the watermark is 2500", "a compaction cannot help", "Raise compaction.watermark"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("%q is missing in: %s", want, f.Message)
		}
	}
	if len(js) != 3 || len(find[protocol.CompactionDraft](js[1])) != 1 || len(js[2].commits) != 0 {
		t.Errorf("%d visits, the last %v", len(js), js[len(js)-1].types())
	}
}

// A window that a config names fails nothing that the server takes: it is tried once.
func TestF05AWindowBelowWhatStaysIsTriedOnce(t *testing.T) {
	js, err := converseAt(t, 8, func(s *stage) { s.agent.Window = func(string) int { return 3400 } })
	if err != nil {
		t.Fatal(err)
	}
	compacted := 0
	for _, j := range js {
		compacted += len(find[protocol.CompactionDraft](j))
	}
	if compacted != 1 {
		t.Errorf("compacted %d times in %d visits", compacted, len(js))
	}
}
