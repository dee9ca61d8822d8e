package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

const chatYAML = `
wf: 1
name: talk
limits: {steps: 100000}
roles:
  you: {ask: ""}
  bot: {prompt: "You talk."}
edges:
  - {from: START, to: you}
  - {from: you, to: END, when: output.text == "/end"}
  - {from: you, to: bot, prompt: "${{ output.text }}"}
  - {from: bot, to: you, limit: 100000}
`

// chatted is a chat of n answers, each of which is a drive of its own.
func chatted(t *testing.T, n int, answer string) (*bench, protocol.RunID) {
	t.Helper()
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
		if _, _, there := turn.History.Records.Get(turn.History.Visit.Parents[0]); !there {
			t.Errorf("%s does not know the record before it", turn.Step)
		}
		return protocol.Conclusion{Text: &answer}, nil
	})
	id, _ := b.run(chatYAML, nil)
	for range n { // and nothing is looked at, which would read all of it each time
		if _, err := b.e.Answer(t.Context(), id, engine.Reply{Text: "And then?"}); err != nil {
			t.Fatal(err)
		}
		s, err := b.e.Drive(t.Context(), id, engine.DriveOptions{By: "test"})
		if err != nil || s.Status() != protocol.Waiting {
			t.Fatal(s.Status(), err)
		}
	}
	return b, id
}

// A drive that ends with an answer is short: what it adds to a snapshot counts all the same.
func TestALongChatIsFoldedFromASnapshot(t *testing.T) {
	b, id := chatted(t, 50, "So it was.")
	if n := len(b.entries(id)); n < 320 {
		t.Fatalf("%d events are too few to tell", n)
	}
	folded, err := engine.Folded(context.Background(), b.e, id)
	if err != nil || folded > 256+20 {
		t.Errorf("%d events are folded, %v", folded, err)
	}
}

func TestTheRecordsOfAChatAreKeptBetweenItsAnswersWithinABound(t *testing.T) {
	b, id := chatted(t, 5, "So it was.")
	if n := engine.RecordsAtRest(b.e)[id]; n != 9 {
		t.Errorf("of you#1 to bot#5, %d records are kept: all those before bot#5 are wanted", n)
	}
	b, id = chatted(t, 6, strings.Repeat("x", 8<<20))
	if n, kept := engine.RecordsAtRest(b.e)[id]; kept {
		t.Errorf("%d records with texts of 8 MiB are kept", n)
	}
}

// A run of many events without a snapshot, as one that was imported, is folded once.
func TestALookAtALongRunKeepsItsState(t *testing.T) {
	b := newBench(t)
	b.noWarning()
	id, whole := b.run(`
wf: 1
name: ticks
limits: {steps: 4000}
roles:
  tick: {set: {n: "${{ (steps.tick?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: tick}
  - {from: tick, to: END, when: output.n >= 600}
  - {from: tick, to: tick, limit: 2000}
`, nil)
	ctx := context.Background()
	if err := engine.ForgetState(ctx, b.e, id); err != nil {
		t.Fatal(err)
	}
	if first, err := engine.Folded(ctx, b.e, id); err != nil || first != 0 {
		t.Errorf("behind what the first look kept there are %d events, %v", first, err)
	}
	b.agrees(id)
	if diff := cmp.Diff(whole.Steps, b.view(id).Steps, sameStep); diff != "" {
		t.Errorf("from the kept state (-before +after):\n%s", diff)
	}
	if err := engine.ForgetState(ctx, b.e, id); err != nil {
		t.Fatal(err)
	}
	s, err := cas.Open(ctx, b.e.Store.Dir(), cas.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	reader := &engine.Engine{Store: s, Warn: func(err error) { t.Errorf("a reader is warned: %v", err) }}
	if n, err := engine.Folded(ctx, reader, id); err != nil || n < 1200 {
		t.Errorf("a reader folds %d events, %v", n, err)
	}
}
