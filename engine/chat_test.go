package engine_test

import (
	"context"
	"strings"
	"testing"

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
	id, v := b.run(chatYAML, nil)
	for range n {
		if _, err := b.e.Answer(context.Background(), id, engine.Reply{Text: "And then?"}); err != nil {
			t.Fatal(err)
		}
		v = b.drive(id)
	}
	if v.Status != protocol.Waiting {
		t.Fatal(v.Status, v.Reason)
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
