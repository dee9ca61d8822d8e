package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// spender is an agent that makes one model call: visit n of the run spends n tokens.
type spender struct{ before func(protocol.Turn) }

func (s *spender) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	if s.before != nil {
		s.before(turn)
	}
	if err := ctx.Err(); err != nil {
		return protocol.Conclusion{}, err
	}
	for _, x := range turn.Transcript {
		if x.Type == protocol.EvUsage {
			return said, nil // it had been made when the process ended
		}
	}
	in, out := int64(10*turn.Visit), int64(turn.Visit)
	if err := emit(ctx, protocol.Usage{Model: "m/" + turn.Role.Name, Input: &in, Cached: new(int64), Output: &out}); err != nil {
		return protocol.Conclusion{}, err
	}
	return said, nil
}

var said = func() protocol.Conclusion {
	text := "said"
	return protocol.Conclusion{Text: &text}
}()

const spendingChild = `
wf: 1
name: child
roles:
  a: {prompt: Spend.}
  b: {prompt: Spend too.}
  gate: {ask: "Enough?", choices: [{label: Yes, value: yes}]}
edges:
  - {from: START, to: a}
  - {from: a, to: b}
  - {from: b, to: a, limit: 2, on_limit: gate}
  - {from: gate, to: END}
`

const spendingParent = `
wf: 1
name: parent
%s
roles:
  first: {prompt: Spend before.}
  sub: {workflow: middle.yaml}
`

const spendingMiddle = `
wf: 1
name: middle
roles:
  inner: {workflow: child.yaml}
`

// familyBench has a run, its child and the child of that, with a model call in the first and
// six in the last: 1 + 2·(1+2+3) output tokens.
func familyBench(t *testing.T, limits string) (b *bench, s *spender, parent string) {
	b, s = newBench(t), &spender{}
	b.e.Performers[protocol.ActPrompt] = s
	for name, text := range map[string]string{"child.yaml": spendingChild, "middle.yaml": spendingMiddle} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b, s, fmt.Sprintf(spendingParent, limits)
}

const familyTokens = 13 // output; input is ten times that

// checkFamily checks that a run counts its own calls and those of its children, each once.
func checkFamily(t *testing.T, b *bench, id protocol.RunID, output int64) {
	t.Helper()
	ctx := context.Background()
	seen := map[protocol.ChildCall]bool{}
	var sum int64
	for x, err := range b.e.Store.After(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Type != protocol.EvUsage {
			continue
		}
		u, err := cas.DecodeData[protocol.Usage](&x.Event)
		if err != nil {
			t.Fatal(err)
		}
		sum += *u.Output
		if u.Child == nil {
			continue
		}
		if x.StepName() != "sub#1" && x.StepName() != "inner#1" {
			t.Errorf("a call of a child counts for %s", x.StepName())
		}
		if seen[*u.Child] {
			t.Errorf("call %v of the child counts twice", *u.Child)
		}
		seen[*u.Child] = true
	}
	s, err := b.e.State(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if s.Totals.Output != output || sum != output || s.Totals.Input != 10*output {
		t.Errorf("run %s: %d tokens in, %d out, events of %d out, want %d out and ten times that in", id, s.Totals.Input, s.Totals.Output, sum, output)
	}
	var byModel, bySteps int64
	for _, m := range s.Totals.Models {
		byModel += m.Output
	}
	v := b.view(id)
	for _, step := range v.Steps {
		if step.Usage.Output != nil {
			bySteps += *step.Usage.Output
		}
	}
	if byModel != output || bySteps != output || *v.Usage.Output != output {
		t.Errorf("sums by model %d, by step %d, of the run %d, want %d each", byModel, bySteps, *v.Usage.Output, output)
	}
	for _, step := range v.Steps {
		if step.Action == protocol.ActWorkflow {
			child := childOf(t, b, id, step.ID)
			if step.Child != child {
				t.Errorf("%s is told to be run %q, and is %s", step.ID, step.Child, child)
			}
			checkFamily(t, b, child, *step.Usage.Output)
		}
	}
}

// childOf is the run that a step of another one began.
func childOf(t *testing.T, b *bench, parent protocol.RunID, step string) protocol.RunID {
	t.Helper()
	heads, err := b.e.Store.Heads(context.Background(), protocol.RunHead(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		id := protocol.RunID(strings.TrimPrefix(h.Name, protocol.RunHead("")))
		if p := b.view(id).Info.Parent; p != nil && p.Run == parent && p.Step == step {
			return id
		}
	}
	t.Fatalf("%s of run %s has no run", step, parent)
	return ""
}

func TestX04TheCallsOfSubWorkflowsCountWhileTheyRunAndWait(t *testing.T) {
	b, s, parent := familyBench(t, "")
	var running []int64 // output tokens of the parent at each call
	s.before = func(turn protocol.Turn) {
		heads, err := b.e.Store.Heads(context.Background(), protocol.RunHead(""))
		if err != nil {
			t.Error(err)
		}
		for _, h := range heads {
			id := protocol.RunID(strings.TrimPrefix(h.Name, protocol.RunHead("")))
			state, err := b.e.State(context.Background(), id)
			if err != nil {
				t.Error(err)
			} else if state.Info.Parent == nil {
				running = append(running, state.Totals.Output)
			}
		}
	}
	id, v := b.run(parent, nil)
	if v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	checkFamily(t, b, id, familyTokens)
	if got := fmt.Sprint(running); got != "[0 1 2 3 5 7 10]" {
		t.Errorf("at its calls the parent had counted %s output tokens", got)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Choice: "yes"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	checkFamily(t, b, id, familyTokens)
	if r, err := b.e.Check(context.Background(), id, nil); err != nil || !r.OK() {
		t.Errorf("checked again: %v %+v", err, r)
	}
}

// The limit of a run stops its sub-workflow in the middle, and a higher one goes on.
func TestX04ALimitOfTokensHoldsForSubWorkflows(t *testing.T) {
	b, _, parent := familyBench(t, "limits: {tokens: 40}")
	id, v := b.run(parent, nil)
	if v.Status != protocol.Suspended || v.Suspended != protocol.ByLimit {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	if in, out := *v.Usage.Input, *v.Usage.Output; in+out != 55 {
		t.Errorf("stopped at %d tokens in and %d out, want 50 and 5: the first that pass the limit", in, out)
	}
	ctx := context.Background()
	for _, limit := range []int64{80, 1000} {
		if _, err := b.e.Drive(ctx, id, engine.DriveOptions{Limits: []protocol.LimitChanged{{Limit: "tokens", Max: limit}}}); err != nil {
			t.Fatal(err)
		}
	}
	if v = b.view(id); v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	checkFamily(t, b, id, familyTokens)
}

// A process that ends at any call of the child counts each of them once when the run is resumed.
func TestX04CallsOfSubWorkflowsCountOnceHoweverOftenTheProcessEnds(t *testing.T) {
	for at := 1; at <= 6; at++ {
		b, s, parent := familyBench(t, "")
		p := b.load(parent)
		id, _, err := b.e.Begin(context.Background(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		calls := 0
		s.before = func(turn protocol.Turn) {
			if calls++; calls == at {
				stop()
			}
		}
		if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at call %d: %v", at, err)
		}
		s.before = nil
		b.open() // another process
		b.e.Performers[protocol.ActPrompt] = s
		if v := b.drive(id); v.Status != protocol.Waiting {
			t.Fatalf("stopped at call %d: %s (%s)", at, v.Status, v.Reason)
		}
		checkFamily(t, b, id, familyTokens)
	}
}

// A child that somebody drives by itself is caught up with when its parent goes on.
func TestX04AChildThatWentOnByItselfIsCaughtUpWith(t *testing.T) {
	b, _, parent := familyBench(t, "limits: {tokens: 40}")
	id, v := b.run(parent, nil)
	if v.Suspended != protocol.ByLimit {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	child := childOf(t, b, childOf(t, b, id, "sub#1"), "inner#1")
	if v := b.drive(child); v.Status != protocol.Waiting || *v.Usage.Output != familyTokens-1 {
		t.Fatalf("the child by itself: %s (%s)", v.Status, v.Reason)
	}
	if _, err := b.e.Drive(context.Background(), id, engine.DriveOptions{Limits: []protocol.LimitChanged{{Limit: "tokens", Max: 1000}}}); err != nil {
		t.Fatal(err)
	}
	if v = b.view(id); v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	checkFamily(t, b, id, familyTokens)
}
