package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules/rulestest"
	"wf/protocol"
	"wf/roles"
)

// A fork of a run that waits in a sub-workflow begins a child of its own, and asks again.
func TestAForkBesideAWaitingSubWorkflowAsksForItself(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(gateYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	id, v := b.run("wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\noutputs: {said: \"${{ steps.sub.output.said }}\"}\n", nil)
	if v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	ctx := context.Background()
	fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: v.Seq})
	if err != nil {
		t.Fatal(err)
	}
	if f := b.drive(fork); f.Status != protocol.Waiting || f.Waiting[0].Question != "Deploy 1?" {
		t.Fatalf("%s (%s) %+v", f.Status, f.Reason, f.Waiting)
	}
	if _, err := b.e.Answer(ctx, fork, engine.Reply{Choice: "yes", Text: "mine"}); err != nil {
		t.Fatal(err)
	}
	if f := b.drive(fork); f.Status != done || string(f.Outputs) != `{"said":"yes: mine"}` {
		t.Errorf("%s (%s) %s", f.Status, f.Reason, f.Outputs)
	}
	if again := b.view(id); again.Head != v.Head {
		t.Error("the original moved")
	}
}

func TestW17AForkSharesTheJournalAndLeavesTheOriginal(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id, v := b.run(loopYAML, nil)
	var at protocol.Seq
	for x, err := range b.e.Store.After(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if x.StepName() == "a#3" && x.Type == protocol.EvStepStarted {
			at = x.Seq - 1
		}
	}
	fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: at, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	f := b.view(fork)
	if f.Seq != at+1 {
		t.Errorf("the fork has %d events, want %d", f.Seq, at+1)
	}
	f = b.drive(fork)
	if f.Status != done || *f.Result != *v.Result {
		t.Errorf("the same definition and values concluded differently: %s %s", f.Status, *f.Result)
	}
	for i := range v.Steps {
		if *v.Steps[i].CID != *f.Steps[i].CID {
			t.Errorf("step %s differs", v.Steps[i].ID)
		}
	}
	if again := b.view(id); again.Head != v.Head {
		t.Error("the original moved")
	}

	other := strings.Replace(loopYAML, "output.n >= 10", "output.n >= 20", 1)
	fork, err = b.e.Fork(ctx, id, engine.ForkOptions{At: at, With: b.load(other), Source: []byte(other)})
	if err != nil {
		t.Fatal(err)
	}
	f = b.drive(fork)
	if f.Status != done || string(f.Outputs) != `{"n":20}` {
		t.Errorf("with another definition: %s (%s) %s", f.Status, f.Reason, f.Outputs)
	}
	if r, err := b.e.Check(ctx, fork, nil); err != nil || !r.OK() {
		t.Errorf("check of the fork: %v %+v", err, r)
	}
}

// seqOf is the place of an event of a step.
func (b *bench) seqOf(id protocol.RunID, step string, typ protocol.EventType) protocol.Seq {
	b.t.Helper()
	for x, err := range b.e.Store.After(context.Background(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if x.StepName() == step && x.Type == typ {
			return x.Seq
		}
	}
	b.t.Fatalf("run %s has no %s of %s", id, typ, step)
	return 0
}

const splitYAML = `wf: 1
name: split
roles:
  a: {set: {n: 1}}
  other: {set: {n: 1}}
  b: {set: {n: 2}}
  c: {set: {n: 3}}
  d: {set: {n: "${{ outputs.b.n + outputs.c.n }}"}}
edges:
  - {from: a, to: other, when: output.n == 7}
  - {from: a, to: other, when: output.n == 8}
  - {from: other, to: END}
  - {from: a, to: [b, c]}
  - {from: [b, c], to: d}
  - {from: d, to: END}
outputs: {n: "${{ steps.d.output.n }}"}
`

// fewer has the edges of splitYAML at other places.
const fewer = `wf: 1
name: split
roles:
  a: {set: {n: 1}}
  b: {set: {n: 20}}
  c: {set: {n: 30}}
  d: {set: {n: "${{ outputs.b.n + outputs.c.n }}"}}
edges:
  - {from: a, to: [b, c]}
  - {from: [b, c], to: d}
  - {from: d, to: END}
outputs: {n: "${{ steps.d.output.n }}"}
`

func TestW17AForkUnderAnotherDefinitionWhile(t *testing.T) {
	fan := "wf: 1\nname: fan\nroles:\n  a: {set: {l: [1, 2, 3]}}\n  w: {set: {n: \"${{ item }}\"}}\nedges:\n" +
		"  - {from: a, to: w, for_each: output.l, max_parallel: 1}\n  - {from: w, to: END}\noutputs: {all: \"${{ map(steps.w.output, .n) }}\"}\n"
	ten := strings.Replace(fan, "${{ item }}", "${{ item * 10 }}", 1)
	for _, c := range []struct {
		name, from, with string
		step             string
		after            bool
		want             string // outputs, or part of the refusal
		steps            string
	}{
		{"both branches are over", splitYAML, fewer, "d#1", false, `{"n":5}`, "a#1 ok b#1 ok c#1 ok d#1 ok"},
		{"one branch is under way", splitYAML, fewer, "c#1", false, `{"n":50}`, "a#1 ok b#1 ok c#1 ok d#1 ok"},
		{"one branch is over, the other under way", splitYAML, fewer, "b#1", true, `{"n":32}`, "a#1 ok b#1 ok c#1 ok d#1 ok"},
		{"the edge names the branches the other way round", splitYAML, strings.Replace(fewer, "to: [b, c]", "to: [c, b]", 1), "b#1", true, `{"n":32}`, "a#1 ok b#1 ok c#1 ok d#1 ok"},
		{"a role under way is gone", splitYAML, "wf: 1\nname: x\nroles:\n  a: {set: {n: 1}}\n  b: {set: {n: 1}}\n", "b#1", true, "c#1 is under way, and no edge of the new definition leads to c", ""},
		{"some items are over", fan, ten, "w#1[1]", false, `{"all":[1,20,30]}`, "a#1 ok w#1[0] ok w#1[1] ok w#1[2] ok"},
		{"the fan-out runs over something else", fan, strings.Replace(ten, "output.l", "\"map(output.l, # + 1)\"", 1), "w#1[1]", false, "w#1 is under way", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			ctx := context.Background()
			id, v := b.run(c.from, nil)
			at := b.seqOf(id, c.step, protocol.EvStepStarted) - 1
			if c.after {
				at = b.seqOf(id, c.step, protocol.EvStepCompleted)
			}
			heads, err := b.e.Store.Heads(ctx, "run/")
			if err != nil {
				t.Fatal(err)
			}
			fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: at, With: b.load(c.with), Source: []byte(c.with)})
			if c.steps == "" {
				if !errors.Is(err, protocol.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the fork gave %v, want %s", err, c.want)
				}
				now, err := b.e.Store.Heads(ctx, "run/")
				if err != nil || len(now) != len(heads) {
					t.Errorf("a refused fork left %d runs behind, %v", len(now)-len(heads), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f := b.drive(fork)
			if f.Status != done || string(f.Outputs) != c.want {
				t.Errorf("%s (%s) %s, want %s", f.Status, f.Reason, f.Outputs, c.want)
			}
			if got := strings.Join(steps(f), " "); got != c.steps {
				t.Errorf("steps %s, want %s", got, c.steps)
			}
			if r, err := b.e.Check(ctx, fork, nil); err != nil || !r.OK() {
				t.Errorf("check of the fork: %v %+v", err, r)
			}
			if again := b.view(id); again.Head != v.Head {
				t.Error("the original moved")
			}
		})
	}
}

// Wherever a run is forked, and whatever it is to go on with: it is refused, or it goes on.
func TestW17AForkUnderAnyDefinitionIsRefusedOrGoesOn(t *testing.T) {
	refused, driven := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var programs []*lang.Program
		for range 2 {
			p, _ := lang.Load([]byte(rulestest.Closing(rt, rulestest.Flow(rt))), lang.Options{File: "random.yaml"})
			if p == nil {
				rt.Skip("lint refuses it")
			}
			programs = append(programs, p)
		}
		b := newBench(t)
		b.e.Performers[protocol.ActSet] = roles.Set{}
		ctx := context.Background()
		id, _, err := b.e.Begin(ctx, engine.Launch{Program: programs[0], Inputs: protocol.JSON("{}")})
		if err != nil {
			rt.Fatal(err)
		}
		whole := b.drive(id)
		at := protocol.Seq(rapid.IntRange(1, int(whole.Seq)).Draw(rt, "fork at"))
		fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: at, With: programs[1]})
		if errors.Is(err, protocol.ErrInvalid) {
			refused++
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		driven++
		b.drive(fork)
		if rep, err := b.e.Check(ctx, fork, nil); err != nil || !rep.OK() {
			rt.Fatalf("check: %v %s", err, cmp.Diff(&engine.CheckReport{}, rep))
		}
	})
	t.Logf("%d were refused, %d went on", refused, driven)
	if driven == 0 {
		t.Error("none went on")
	}
}
