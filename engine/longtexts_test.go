package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// longSizes are at, below and beyond what an event holds in place, what a prompt may be long and
// what a payload is cut at.
var longSizes = []int{
	protocol.InlineMax - 1, protocol.InlineMax, protocol.InlineMax + 1, 1100,
	protocol.EdgePromptMax - 1, protocol.EdgePromptMax, protocol.EdgePromptMax + 1,
	200 << 10, protocol.ChunkSize + 1,
}

// noWarning fails a test in which something derived could not be kept.
func (b *bench) noWarning() {
	b.e.Warn = func(err error) { b.t.Errorf("a warning: %v", err) }
}

// lines are those that commands have written to a file of the workspace.
func (b *bench) lines(name string) int {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// agrees compares the state that the driver left with a fold of the journal.
func (b *bench) agrees(id protocol.RunID) {
	b.t.Helper()
	if err := engine.DrivenAgrees(context.Background(), b.e, id); err != nil {
		b.t.Error(err)
	}
}

// F-01: the visit that is open when a snapshot is made may have been handed a text of any length.
func TestAPromptOfAnyLengthEndsARunWell(t *testing.T) {
	for _, n := range longSizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBench(t)
			b.noWarning()
			id, v := b.run(fmt.Sprintf(`
wf: 1
name: long
roles:
  a: {run: "head -c %d /dev/zero | tr '\\0' x"}
  b: {run: "echo once >> eff"}
edges:
  - {from: START, to: a}
  - {from: a, to: b, prompt: "${{ output.text }}"}
  - {from: b, to: END}
`, n), nil)
			if v.Status != protocol.Done {
				t.Fatalf("%s: %s", v.Status, v.Reason)
			}
			if got := len(v.Steps[1].EdgePrompt); got != min(n, protocol.EdgePromptMax) {
				t.Errorf("the prompt has %d bytes", got)
			}
			b.drive(id)
			if got := b.lines("eff"); got != 1 {
				t.Errorf("b acted %d times", got)
			}
			b.agrees(id)
		})
	}
}

// A fan-out is still open when its snapshots are made, each item with a long prompt.
func TestAFanOutOfLongPromptsEndsWell(t *testing.T) {
	items := 200
	if testing.Short() {
		items = 130 // still more events than a snapshot is made after
	}
	for _, n := range []int{1100, 200 << 10} {
		b := newBench(t)
		b.noWarning()
		id, v := b.run(fmt.Sprintf(`
wf: 1
name: wide
inputs: {long: {type: string}}
roles:
  list: {set: {items: "${{ 1..%d }}"}}
  one: {run: "echo once >> eff"}
  last: {set: {n: 1}}
edges:
  - {from: START, to: list}
  - {from: list, to: one, for_each: output.items, prompt: "${{ item }} ${{ inputs.long }}"}
  - {from: one, to: last, prompt: "${{ inputs.long }}"}
  - {from: last, to: END}
`, items), map[string]any{"long": strings.Repeat("x", n)})
		if v.Status != protocol.Done || len(v.Steps) != items+2 {
			t.Fatalf("%s: %s, %d steps", v.Status, v.Reason, len(v.Steps))
		}
		if got := b.lines("eff"); got != items {
			t.Errorf("%d commands acted, want %d", got, items)
		}
		if got := len(b.entries(id)); got <= 256 {
			t.Errorf("%d events", got)
		}
		b.agrees(id)
	}
}

// A run that waits is opened again from its snapshot: the question, its form, the prompts and the
// reason of a suspension are what they were, however long.
func TestWhatWaitsIsReadAgainWhole(t *testing.T) {
	for _, n := range longSizes {
		b := newBench(t)
		b.noWarning()
		long := strings.Repeat("q", n)
		id, v := b.run(`
wf: 1
name: asks
inputs: {long: {type: string}}
roles:
  a: {ask: "${{ inputs.long }}"}
edges:
  - {from: START, to: a, prompt: "${{ inputs.long }}"}
  - {from: a, to: END}
`, map[string]any{"long": long})
		if v.Status != protocol.Waiting {
			t.Fatalf("%s: %s", v.Status, v.Reason)
		}
		b.agrees(id)
		b.open()
		b.noWarning()
		if w := b.view(id).Waiting; len(w) != 1 || w[0].Question != long {
			t.Errorf("of %d bytes the question has %d", n, len(w[0].Question))
		}
		if _, err := b.e.Answer(t.Context(), id, engine.Reply{Text: long, By: "test"}); err != nil {
			t.Fatal(err)
		}
		v = b.drive(id)
		if v.Status != protocol.Done || v.Steps[0].Text != long {
			t.Errorf("%d bytes: %s: %s", n, v.Status, v.Reason)
		}
		b.agrees(id)
	}
}

// blamed fails for want of something, with a long reason.
type blamed struct{ why string }

func (x blamed) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	return protocol.Conclusion{}, errors.New(x.why)
}

func TestALongReasonIsThereAfterARestart(t *testing.T) {
	for _, n := range longSizes {
		b := newBench(t)
		b.noWarning()
		why := strings.Repeat("w", n)
		b.e.Performers[protocol.ActSet] = blamed{why}
		id, v := b.run("wf: 1\nname: stuck\nroles: {a: {set: {n: 1}}}\n", nil)
		b.agrees(id)
		b.open()
		if again := b.view(id); again.Reason != v.Reason || !strings.Contains(again.Reason, why) {
			t.Errorf("%d bytes: the reason had %d and has %d bytes", n, len(v.Reason), len(again.Reason))
		}
	}
}

// mumbling says and fails with bytes that are no text.
type mumbling struct{}

func (mumbling) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	if err := emit(ctx, protocol.TextSaid{Content: protocol.NewText("a\xffb")}); err != nil {
		return protocol.Conclusion{}, err
	}
	return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "bad", Phase: "run", Message: "no \xff"}}
}

func TestBytesThatAreNoTextDoNotEndADrive(t *testing.T) {
	b := newBench(t)
	b.noWarning()
	b.e.Performers[protocol.ActSet] = mumbling{}
	_, v := b.run("wf: 1\nname: mumbles\nroles: {a: {set: {n: 1}}}\n", nil)
	if v.Status != protocol.Suspended || !strings.Contains(v.Reason, "no \uFFFD") {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
}

// What cannot be stored is the business of the performer that says it: the other visits go on.
type unstorable struct{}

func (unstorable) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	if turn.Role.Name == "bad" {
		return protocol.Conclusion{}, emit(ctx, protocol.ToolCall{Call: "1", Name: "a\xff"})
	}
	return protocol.Conclusion{Data: protocol.JSON(`{"n":1}`)}, nil
}

func TestAnEventThatCannotBeStoredParksItsVisitAlone(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActSet] = unstorable{}
	_, v := b.run("wf: 1\nname: two\nroles: {s: {set: {n: 1}}, bad: {set: {n: 1}}, good: {set: {n: 1}}}\nedges:\n"+
		"  - {from: START, to: s}\n  - {from: s, to: [bad, good]}\n  - {from: [bad, good], to: END}\n", nil)
	if v.Status != protocol.Suspended || !strings.Contains(v.Reason, "bad#1") {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
	if got := fmt.Sprint(steps(v)); !strings.Contains(got, "good#1 ok") {
		t.Errorf("steps: %s", got)
	}
}

// No snapshot can be stored: every run ends as it would, every command acts once, and what was
// interrupted goes on.
func TestF01AFailureOfWhatIsDerivedNeverStopsOrRepeatsWork(t *testing.T) {
	b := newBench(t)
	if err := inDir(b.e).Close(); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	s, err := cas.Open(t.Context(), filepath.Join(b.dir, ".wf"), cas.Options{
		Before: func(op cas.Op) error {
			if op == cas.OpDerive {
				return errors.New("no room for what is derived")
			}
			return nil
		},
		Warn: func(error) { refused.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b.e.Store = s
	p := b.load(`
wf: 1
name: wide
roles:
  list: {set: {items: "${{ 1..300 }}"}}
  one: {run: "echo once >> eff"}
edges:
  - {from: START, to: list}
  - {from: list, to: one, for_each: output.items}
  - {from: one, to: END}
`)
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	// Stopped once between two items: the store has no snapshot to go on from.
	ctx, stop := context.WithCancel(t.Context())
	b.e.Parallel = 1
	done := 0
	b.e.Watch = func(n api.Update) {
		if _, ok := n.Data.(protocol.StepCompleted); ok {
			if done++; done == 200 {
				stop()
			}
		}
	}
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.e.Watch = nil
	v := b.drive(id)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	// The command that ran when the run was stopped runs again: at least once is what is promised.
	if n := b.lines("eff"); n != 300 && n != 301 {
		t.Errorf("%d commands acted, want 300", n)
	}
	if refused.Load() == 0 {
		t.Error("nothing derived was ever written")
	}
	if err := engine.DrivenAgrees(t.Context(), b.e, id); err != nil {
		t.Error(err)
	}
}
