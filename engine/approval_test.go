package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// asksFor asks for one call in each visit, unless that is allowed for the run, and concludes with
// what it was told.
func asksFor(digest string) performerFunc {
	return func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		said := "allowed for the run by " + turn.Allowed[digest]
		if turn.Allowed[digest] == "" {
			if len(turn.Answers) == 0 {
				err := emit(ctx, protocol.WaitingFor{Kind: protocol.WaitApproval, Call: "c", Shown: digest, Question: protocol.NewText("rm -rf build"),
					Choices: []protocol.Choice{{Label: "Once", Value: protocol.Allow}, {Label: "Run", Value: protocol.AllowRun}, {Label: "Deny", Value: protocol.Deny}}})
				return protocol.Conclusion{}, errors.Join(err, protocol.ErrWaiting)
			}
			a := turn.Answers[0].Answer
			d := protocol.Approval{Call: "c", Decision: protocol.Allow, By: a.By, Shown: a.Shown}
			if a.Choice == protocol.AllowRun {
				d.For = protocol.ForRun
			}
			if err := emit(ctx, d); err != nil {
				return protocol.Conclusion{}, err
			}
			said = fmt.Sprintf("%s of %s %s", a.Choice, a.Shown, a.Text.S)
		}
		return protocol.Conclusion{Text: &said}, nil
	}
}

const allowYAML = `
wf: 1
name: allow
limits: {cost_usd: 1, duration: 1h}
roles:
  a: {prompt: Work., model: x/y, timeout: 1m}
  b: {prompt: Work., model: x/y, timeout: 1m}
edges:
  - {from: START, to: a}
  - {from: a, to: b}
  - {from: b, to: END}
outputs: {said: "${{ steps.a.text }}; ${{ steps.b.text }}"}
`

func TestAnAnswerIsForTheCallThatWasShown(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	b.e.Performers[protocol.ActPrompt] = asksFor("d1")
	id, v := b.run(allowYAML, nil)
	if v.Status != protocol.Waiting || v.Waiting[0].Shown != "d1" {
		t.Fatalf("%s %+v", v.Status, v.Waiting)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "allow", Shown: "d0"}); !errors.Is(err, protocol.ErrNotWaiting) {
		t.Errorf("an answer to another call: %v", err)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Text: "allow it, I think"}); !errors.Is(err, protocol.ErrAnswer) {
		t.Errorf("a text that only begins with a choice allows: %v", err)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Text: "deny: use the test database"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Waiting[0].Step != "b#1" {
		t.Fatalf("%s %+v", v.Status, v.Waiting)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "allow", Shown: "d1"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); string(v.Outputs) != `{"said":"deny of d1 use the test database; allow of d1 "}` {
		t.Errorf("%s %s", v.Status, v.Outputs)
	}
}

func TestACallThatWasAllowedForTheRunIsKnownToLaterVisitsAndForks(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	b.e.Performers[protocol.ActPrompt] = asksFor("d1")
	id, _ := b.run(allowYAML, nil)
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "allow_run", By: "kim"}); err != nil {
		t.Fatal(err)
	}
	b.open() // another process
	b.e.Performers[protocol.ActPrompt] = asksFor("d1")
	want := `{"said":"allow_run of d1 ; allowed for the run by kim"}`
	v := b.drive(id)
	if string(v.Outputs) != want {
		t.Fatalf("%s %s", v.Status, v.Outputs)
	}
	at := protocol.Seq(0)
	for x, err := range b.e.Store.After(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Type == protocol.EvStepStarted && x.StepName() == "b#1" {
			at = x.Seq - 1
		}
	}
	fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: at})
	if err != nil {
		t.Fatal(err)
	}
	if f := b.drive(fork); string(f.Outputs) != want {
		t.Errorf("the fork: %s %s", f.Status, f.Outputs)
	}
}

func TestASubWorkflowHandsItsToolCallUpAndTheWordDown(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = asksFor("d1")
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(allowYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	id, v := b.run("wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\noutputs: {said: \"${{ steps.sub.output.said }}\"}\n", nil)
	if v.Status != protocol.Waiting || v.Waiting[0].Step != "sub#1" {
		t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
	if d := cmp.Diff("d1", v.Waiting[0].Shown); d != "" {
		t.Error(d)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Choice: "allow_run", By: "kim", Shown: "d1"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != done || string(v.Outputs) != `{"said":"allow_run of d1 ; allowed for the run by kim"}` {
		t.Errorf("%s (%s) %s", v.Status, v.Reason, v.Outputs)
	}
}
