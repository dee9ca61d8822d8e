package agentkit

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/modeltest"
	"wf/protocol"
)

// A call that a timeout ended was sent and may have to be paid for: it is journaled, with what was
// told until then of what it used, and made again under the same number.
func TestF15ACallThatIsGivenUpIsCounted(t *testing.T) {
	for name, ends := range map[string]modeltest.Answer{
		"before it answered": {Stall: true, Header: map[string]string{"Content-Type": "text/event-stream"}},
		"in the middle":      {Say: []modeltest.Piece{{Text: "hm"}}, Stall: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ends.Before = cancel
			s, server := answering(t, ends, said("---\nstatus: done\n---\n", "stop"))
			j := &journal{}
			_, err := s.agent.Perform(ctx, s.turn, j.emit)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			u := find[protocol.Usage](j)
			if len(u) != 1 || u[0].Stop != protocol.StopGivenUp || u[0].Input != nil || u[0].Output != nil && *u[0].Output != 1 || u[0].Model != "anthropic/x" {
				t.Fatalf("the journal tells %+v", u)
			}
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"prompt", "usage", "text+usage"}, j.types()); d != "" {
				t.Error(d)
			}
			if r := server.Requests(); string(r[0].Body) != string(r[1].Body) {
				t.Errorf("it went on with another request: %s", cmp.Diff(string(r[0].Body), string(r[1].Body)))
			}
		})
	}
}

func TestF15AScriptAnswersACallThatWasGivenUpAgain(t *testing.T) {
	s, j := newStage(t, `coder#1: [{text: "---\nstatus: done\n---\nFirst."}, {text: "---\nstatus: done\n---\nSecond."}]`), &journal{}
	j.commits = append(j.commits, []protocol.Data{protocol.PromptSent{}}, []protocol.Data{protocol.Usage{Model: "script/replies.yaml", Stop: protocol.StopGivenUp}})
	c, err := s.perform(t, j)
	if err != nil || !strings.HasSuffix(*c.Text, "First.") {
		t.Errorf("got %v, %v", c.Text, err)
	}
}

// Each correction is an event behind the answer that it is for, once, wherever a process dies.
func TestF15CorrectionsAreJournaled(t *testing.T) {
	const replies = `coder#1: [{text: no}, {text: "---\nstatus: perhaps\n---\n"}, {text: "---\nstatus: done\n---\n"}]`
	whole, j := newStage(t, replies), &journal{}
	if _, err := whole.perform(t, j); err != nil {
		t.Fatal(err)
	}
	want := []string{"prompt", "text+usage", "correction", "text+usage", "correction", "text+usage"}
	if d := cmp.Diff(want, j.types()); d != "" {
		t.Fatal(d)
	}
	c := find[protocol.Correction](j)
	if c[0].Number != 1 || c[1].Number != 2 || c[0].Reasons.S == "" || !strings.Contains(c[1].Reasons.S, "status") {
		t.Errorf("got %+v", c)
	}
	if !strings.Contains(whole.sent[1], c[0].Reasons.S[:40]) {
		t.Errorf("the model was told otherwise: %s", whole.sent[1])
	}
	for stop := 1; stop < len(j.commits); stop++ {
		for _, slow := range []bool{false, true} {
			s, cut := newStage(t, replies), &journal{stop: stop, slow: slow}
			if _, err := s.perform(t, cut); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
			cut.stop = 0
			if _, err := s.perform(t, cut); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, cut.types()); d != "" {
				t.Errorf("after commit %d: %s", stop, d)
			}
		}
	}
}

// A run of a version that journaled none goes on as it would have: only the newest is caught up.
func TestF15ARunWithoutCorrectionEventsGoesOn(t *testing.T) {
	const replies = `coder#1: [{text: no}, {text: never}, {text: "---\nstatus: done\n---\n"}]`
	s, j := newStage(t, replies), &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	old := &journal{}
	for _, commit := range j.commits[:4] {
		if commit[0].EventType() != protocol.EvCorrection {
			old.commits = append(old.commits, commit)
		}
	}
	again := newStage(t, replies)
	if _, err := again.perform(t, old); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"prompt", "text+usage", "text+usage", "correction", "text+usage"}, old.types()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(s.sent[2], again.sent[0]); d != "" {
		t.Errorf("it went on with another request: %s", d)
	}
}
