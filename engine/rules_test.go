package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

const done = protocol.Done

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		status     protocol.RunStatus
		steps      string // ids with their status, in order of dispatch
		reason     string // part of it
		outputs    string
	}{
		{"a command that fails takes its failure edge", `
wf: 1
name: rescue
roles:
  a: {run: "echo broken; exit 3", timeout: 10s}
  b: {set: {code: "${{ output.exit_code }}", text: "${{ output.text }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: END}
  - {from: a, to: b, on: failure}
  - {from: b, to: END}
outputs: {code: "${{ steps.b?.output.code }}", text: "${{ steps.b?.output.text }}"}
`, done, "a#1 failed, b#1 ok", "", `{"code":3,"text":"broken"}`},
		{"a failure without an edge parks the run", `
wf: 1
name: parked
roles:
  a: {run: "exit 3", timeout: 10s}
`, protocol.Suspended, "a#1 failed", "a#1", "{}"},
		{"continue_on_error makes the exit code data", `
wf: 1
name: tolerant
roles:
  a: {run: "exit 3", continue_on_error: true, timeout: 10s}
outputs: {code: "${{ steps.a.output.exit_code }}"}
`, done, "a#1 ok", "", `{"code":3}`},
		{"a timeout is a failure of its own kind", `
wf: 1
name: slow
roles:
  a: {run: "sleep 30", timeout: 50ms}
  b: {set: {n: 1}}
edges:
  - {from: START, to: a}
  - {from: a, to: END}
  - {from: a, to: b, on: failure}
  - {from: b, to: END}
`, done, "a#1 failed, b#1 ok", "", "{}"},
		{"limits.steps suspends with the number", `
wf: 1
name: limited
limits: {steps: 3}
roles:
  a: {set: {n: 1}}
edges:
  - {from: START, to: a}
  - {from: a, to: a, when: output.n == 1, limit: 50}
  - {from: a, to: END}
`, protocol.Suspended, "a#1 ok, a#2 ok, a#3 ok", "limits.steps reached: 3 of 3", "{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			id, v := b.run(c.yaml, nil)
			if v.Status != c.status || !strings.Contains(v.Reason, c.reason) || string(v.Outputs) != c.outputs {
				t.Errorf("%s (%s), outputs %s", v.Status, v.Reason, v.Outputs)
			}
			if got := strings.Join(steps(v), ", "); got != c.steps {
				t.Errorf("steps %s\nwant  %s", got, c.steps)
			}
			if r, err := b.e.Check(context.Background(), id, nil); err != nil || !r.OK() {
				t.Errorf("check: %v %+v", err, r)
			}
		})
	}
}

func TestRetriesCountOnAndAreKept(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: flaky
roles:
  a: {run: 'n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; echo "attempt $WF_ATTEMPT"; test $n -ge 5', retry: {attempts: 3, delay: 1ms}, timeout: 10s}
`, nil)
	if v.Status != protocol.Suspended || len(v.Steps[0].Attempts) != 3 {
		t.Fatalf("%s, attempts %+v", v.Status, v.Steps[0].Attempts)
	}
	if v = b.drive(id); v.Status != protocol.Suspended || len(v.Steps[0].Attempts) != 4 {
		t.Fatalf("%s, attempts %+v", v.Status, v.Steps[0].Attempts)
	}
	v = b.drive(id)
	if v.Status != done || v.Steps[0].Text != "attempt 5" || v.Steps[0].Attempts[3].Error.Code != "exit_code" {
		t.Fatalf("%s %s, text %q, attempts %+v", v.Status, v.Reason, v.Steps[0].Text, v.Steps[0].Attempts)
	}
}

func TestAFanOutRetriesOnlyWhatFailed(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: some-fail
roles:
  a: {set: {items: [0, 1, 2]}}
  w: {run: 'echo "$I" >>log; test "$I" != 1 || test -f ok', env: {I: "${{ item }}"}, timeout: 10s}
edges:
  - {from: START, to: a}
  - {from: a, to: w, for_each: output.items, max_parallel: 1}
  - {from: w, to: END}
`, nil)
	if v.Status != protocol.Suspended {
		t.Fatalf("%s, %v", v.Status, steps(v))
	}
	if err := os.WriteFile(filepath.Join(b.dir, "ok"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	log, err := os.ReadFile(filepath.Join(b.dir, "log"))
	if diff := cmp.Diff("0\n1\n2\n1\n", string(log)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

const gateYAML = `
wf: 1
name: gate
roles:
  a: {set: {n: 1}}
  gate:
    ask: "Deploy ${{ steps.a.output.n }}?"
    choices: [{label: Yes, value: "yes", primary: true}, {label: No, value: "no"}]
  b: {set: {said: "${{ output.choice }}: ${{ output.text }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: gate}
  - {from: gate, to: b, when: output.choice == "yes"}
  - {from: gate, to: FAIL}
  - {from: b, to: END}
outputs: {said: "${{ steps.b?.output.said }}"}
`

func TestW16AQuestionWaitsAndTheAnswerGoesOn(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id, v := b.run(gateYAML, nil)
	if v.Status != protocol.Waiting || v.Waiting[0].Question != "Deploy 1?" || v.Waiting[0].Step != "gate#1" {
		t.Fatalf("%s %+v", v.Status, v.Waiting)
	}
	head := v.Head
	if v = b.drive(id); v.Head != head {
		t.Errorf("driving a run that only waits wrote %d events", v.Seq)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "maybe"}); !errors.Is(err, protocol.ErrAnswer) {
		t.Errorf("an unknown choice: %v", err)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Step: "b#1", Choice: "yes"}); !errors.Is(err, protocol.ErrNotWaiting) {
		t.Errorf("another step: %v", err)
	}
	b.open() // another process, months later
	if _, err := b.e.Answer(ctx, id, engine.Reply{Step: "gate#1", Choice: "Yes", Text: "go", By: "ada"}); err != nil {
		t.Fatal(err)
	}
	v = b.drive(id)
	if v.Status != done || string(v.Outputs) != `{"said":"yes: go"}` {
		t.Fatalf("%s %s", v.Status, v.Outputs)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "yes"}); !errors.Is(err, protocol.ErrFinal) {
		t.Errorf("an answer to a finished run: %v", err)
	}
}

func TestACancelledRunIsOverAndItsCommandGone(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	p := b.load("wf: 1\nname: long\nroles:\n  a: {run: 'echo $$ >pid; sleep 60', timeout: 2m}\n")
	id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	b.e.Watch = func(n api.Update) {
		if n.Entry != nil && n.Entry.Type == protocol.EvStepStarted {
			close(started)
		}
	}
	over := make(chan error, 1)
	go func() {
		s, err := b.e.Drive(ctx, id, engine.DriveOptions{})
		if err == nil && s.Status() != protocol.Cancelled {
			err = errors.New(string(s.Status()))
		}
		over <- err
	}()
	<-started
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("a second driver: %v", err)
	}
	if err := b.e.Cancel(ctx, id, "test", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if v := b.view(id); v.Status != protocol.Cancelled || v.Reason != "enough" {
		t.Errorf("%s (%s)", v.Status, v.Reason)
	}
}

func TestLimitsAreRaisedOnResume(t *testing.T) {
	b := newBench(t)
	yaml := "wf: 1\nname: limited\nlimits: {steps: 3}\nroles:\n  a: {set: {n: \"${{ (steps.a?.output.n ?? 0) + 1 }}\"}}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: END, when: output.n == 5}\n  - {from: a, to: a, limit: 50}\n"
	id, v := b.run(yaml, nil)
	if v.Status != protocol.Suspended || v.Suspended != protocol.ByLimit {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	if v = b.drive(id); v.Suspended != protocol.ByLimit {
		t.Fatalf("without raising: %s (%s)", v.Status, v.Reason)
	}
	_, err := b.e.Drive(context.Background(), id, engine.DriveOptions{Limits: []protocol.LimitChanged{{Limit: "steps", Max: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	if v = b.view(id); v.Status != done || len(v.Steps) != 5 {
		t.Fatalf("%s (%s) %v", v.Status, v.Reason, steps(v))
	}
}

func TestARequestIdStartsNothingTwice(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	l := engine.Launch{Program: b.load(loopYAML), Inputs: protocol.JSON("{}"), RequestID: "r-1", Tags: []string{"x"}}
	a, fresh, err := b.e.Begin(ctx, l)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	c, fresh, err := b.e.Begin(ctx, l)
	if err != nil || fresh || a != c {
		t.Fatal(a, c, fresh, err)
	}
}
