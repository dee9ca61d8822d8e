package engine_test

import (
	"context"
	"strings"
	"testing"

	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

const talkYAML = `
wf: 1
name: talk
roles:
  you: {ask: ""}
  bot: {prompt: "You answer."}
edges:
  - {from: START, to: you}
  - {from: you, to: END, when: "output.text == '/end'"}
  - {from: you, to: bot, prompt: "${{ output.text }}"}
  - {from: bot, to: you, limit: 9}
`

// A bot answers with what it was told last. While busy is open it says that it works, and waits
// to be interrupted.
type bot struct {
	busy chan struct{}
	seen []string
}

func (x *bot) Perform(ctx context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	said := strings.Trim(turn.EdgePrompt+"\n"+turn.History.Visit.Inject, "\n")
	x.seen = append(x.seen, said)
	if x.busy != nil {
		close(x.busy)
		x.busy = nil
		<-ctx.Done()
		return protocol.Conclusion{}, ctx.Err()
	}
	return protocol.Conclusion{Text: &said}, nil
}

func talking(t *testing.T) (*bench, *bot, protocol.RunID) {
	b, x := newBench(t), &bot{}
	b.e.Performers[protocol.ActPrompt] = x
	id, _ := b.run(talkYAML, nil)
	return b, x, id
}

// F-09: what is said after an interruption is heard by the visit that goes on, and by no other.
func TestWhatIsSaidAfterAnInterruptionIsHeardWhenTheVisitGoesOn(t *testing.T) {
	b, x, id := talking(t)
	busy := make(chan struct{})
	x.busy = busy
	if _, err := b.e.Answer(t.Context(), id, engine.Reply{Text: "count to a million"}); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		<-busy
		interrupt()
	}()
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); err == nil {
		t.Fatal("the drive was not interrupted")
	}
	long := strings.Repeat("no, to ten ", 300)
	if err := b.e.Message(t.Context(), id, "ada", long); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != protocol.Waiting || len(v.Steps) != 3 {
		t.Fatalf("%s after %d steps: %s", v.Status, len(v.Steps), v.Reason)
	}
	if want := "count to a million\n[message from ada]\n" + long; len(x.seen) != 2 || x.seen[1] != want {
		t.Errorf("the agent read %.200q", x.seen)
	}
	if h := b.history(id, "bot#1"); !strings.Contains(h.Visit.Inject, "no, to ten") {
		t.Errorf("its history holds %.80q", h.Visit.Inject)
	}
	b.sound(id)
}

// What is said while the agent works is the next turn of the conversation, from whichever screen.
func TestWhatIsSaidWhileTheAgentWorksIsTheNextTurn(t *testing.T) {
	b, x, id := talking(t)
	if _, err := b.e.Answer(t.Context(), id, engine.Reply{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		if turn.Visit == 1 {
			for _, text := range []string{"and another thing", "and a last one"} {
				if err := b.e.Message(ctx, id, "ada", text); err != nil {
					return protocol.Conclusion{}, err
				}
			}
		}
		return x.Perform(ctx, turn, emit)
	})
	if v := b.drive(id); v.Status != protocol.Waiting || len(v.Steps) != 5 {
		t.Fatalf("%s after %d steps: %s", v.Status, len(v.Steps), v.Reason)
	}
	want := "[message from ada]\nand another thing\n\n[message from ada]\nand a last one"
	if len(x.seen) != 2 || x.seen[1] != want {
		t.Errorf("the agent read %q", x.seen)
	}
	b.sound(id)
}

// A question in words is never answered by what was said before it was asked.
func TestAMessageDoesNotAnswerAQuestionThatComesLater(t *testing.T) {
	b := newBench(t)
	id, _ := b.run(strings.Replace(talkYAML, `ask: ""`, `ask: "Shall I?"`, 1), nil)
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(ctx context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
		text := "well"
		return protocol.Conclusion{Text: &text}, b.e.Message(ctx, id, "sensor", "it rains")
	})
	if _, err := b.e.Answer(t.Context(), id, engine.Reply{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != protocol.Waiting || len(v.Steps) != 3 {
		t.Errorf("%s after %d steps", v.Status, len(v.Steps))
	}
}

// What an agent was sent stays a prefix of what it is sent in a fork, so the fork of a run in an
// older format keeps it, unless nothing was sent yet.
func TestAForkKeepsTheFormatOfWhatWasSent(t *testing.T) {
	b, _, id := talking(t)
	if got := formatOfFork(b, id); got != 1 {
		t.Errorf("a fork in the middle has format %d, want that of its origin", got)
	}
	p := b.load(talkYAML)
	fresh, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	if got := formatOfFork(b, fresh); got != protocol.Format {
		t.Errorf("a fork at the very beginning has format %d, want the newest, %d", got, protocol.Format)
	}
}

// formatOne has every Start pin the first format.
type formatOne struct{ rules.Records }

func (r formatOne) Open(start protocol.Link) (*rules.Opened, error) {
	o, err := r.Records.Open(start)
	if err != nil {
		return nil, err
	}
	old := *o
	old.Start.Format = 1
	return &old, nil
}

// formatOfFork is the format of messages that a fork of a run of the first format pins.
func formatOfFork(b *bench, id protocol.RunID) int {
	b.t.Helper()
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(b.t.Context(), l) }
	s, err := rules.Fold(formatOne{engine.Records(read)}, b.e.Store.After(b.t.Context(), id, 0))
	if err != nil {
		b.t.Fatal(err)
	}
	return s.FormatOfFork()
}
