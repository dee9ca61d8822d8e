package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// heldWhilePrepared is an agent that is held while it is prepared, in the visits that say so.
type heldWhilePrepared struct {
	step    func(turn protocol.Turn) bool
	held    chan struct{} // gets one for each visit that is held
	release chan struct{}
	fails   error

	mu    sync.Mutex
	began []protocol.Turn
}

func (h *heldWhilePrepared) Prepare(ctx context.Context, turn protocol.Turn) (roles.Preparation, error) {
	prepared := roles.Preparation{Tools: "[]", Inject: "recalled for " + turn.EdgePrompt}
	if !h.step(turn) {
		return prepared, h.fails
	}
	emit := roles.EmitOf(ctx)
	if err := emit(context.WithoutCancel(ctx), heldData); err != nil {
		return prepared, err
	}
	h.held <- struct{}{}
	select {
	case <-h.release:
	case <-ctx.Done():
		return prepared, ctx.Err()
	}
	return prepared, errors.Join(h.fails, emit(roles.Soon(context.WithoutCancel(ctx)), protocol.Released{MS: 1}))
}

func (h *heldWhilePrepared) Perform(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = append(h.began, turn)
	return protocol.Conclusion{Text: new("done")}, nil
}

func newHeld(b *bench, step func(protocol.Turn) bool) *heldWhilePrepared {
	h := &heldWhilePrepared{step: step, held: make(chan struct{}, 1000), release: make(chan struct{})}
	b.e.Performers[protocol.ActPrompt] = h
	return h
}

const twiceYAML = `
wf: 1
name: twice
roles:
  a: {prompt: You work., model: x/y}
  b: {set: {n: 1}}
edges:
  - {from: START, to: a, prompt: one}
  - {from: a, to: b}
  - {from: b, to: a, prompt: two, limit: 1, on_limit: END}
`

// A visit that is held while it is prepared begins, held; the run is interrupted, messages come meanwhile, and it goes on
// with all of that as if nothing had kept it back: the records are those of a run that was not.
func TestAVisitIsHeldWhileItIsPrepared(t *testing.T) {
	never := func(protocol.Turn) bool { return false }
	for name, step := range map[string]func(protocol.Turn) bool{
		"its first visit":               func(x protocol.Turn) bool { return x.Visit == 1 },
		"the conversation that goes on": func(x protocol.Turn) bool { return x.Visit == 2 },
	} {
		for _, message := range []bool{false, true} {
			free := newBench(t)
			newHeld(free, never)
			_, want := free.run(twiceYAML, nil)

			b := newBench(t)
			h := newHeld(b, step)
			id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(twiceYAML), Inputs: protocol.JSON("{}"), Workspace: b.dir})
			if err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := b.e.Drive(ctx, id, engine.DriveOptions{})
				over <- err
			}()
			<-h.held
			v := b.view(id)
			last := v.Steps[len(v.Steps)-1]
			if last.Held == "" || last.Status != "running" {
				t.Errorf("%s: %s is %s, held: %q", name, last.ID, last.Status, last.Held)
			}
			interrupt()
			if err := <-over; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if message {
				if err := b.e.Message(t.Context(), id, "sensor", "hot"); err != nil {
					t.Fatal(err)
				}
			}
			close(h.release)
			if v = b.drive(id); v.Status != done {
				t.Fatalf("%s: %s (%s)", name, v.Status, v.Reason)
			}
			if same := *v.Result == *want.Result; same == message {
				t.Errorf("%s: the result %v, of a run that was not held %v", name, v.Result, want.Result)
			}
			if len(h.began) != 2 || len(v.Steps) < 3 || len(v.Steps[0].Attempts) != 1 || len(v.Steps[2].Attempts) != 1 {
				t.Errorf("%s: performed %d times: %v", name, len(h.began), steps(v))
			}
			for i, x := range h.began {
				got := x.History.Visit.Inject
				if !strings.HasPrefix(got, "recalled for "+[]string{"one", "two"}[i]) || x.History.Tools != "[]" {
					t.Errorf("%s: visit %d reads %q, tools %q", name, i+1, got, x.History.Tools)
				}
				if says := strings.Contains(got, "hot"); says != (message && step(x)) {
					t.Errorf("%s: visit %d reads %q", name, i+1, got)
				}
			}
			if r, err := b.e.Check(t.Context(), id, nil); err != nil || !r.OK() {
				t.Errorf("%s: checked again: %v %+v", name, err, r)
			}
		}
	}
}

// What goes wrong once the hold is over suspends the run as it does without one, and a resume prepares the visit anew.
func TestAVisitThatWasHeldCannotBePrepared(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, func(x protocol.Turn) bool { return true })
	h.fails = protocol.ErrModel
	close(h.release)
	id, v := b.run(twiceYAML, nil)
	if v.Status != protocol.Suspended || v.Code != protocol.ErrModel.Code || len(v.Steps) != 1 || !strings.Contains(v.Reason, "prepare a#1") {
		t.Fatalf("%s (%s) %q %v", v.Status, v.Reason, v.Code, steps(v))
	}
	if h.fails = nil; b.drive(id).Status != done {
		t.Error("it does not go on")
	}
}

// While a visit is held as it is prepared the run goes on: other visits are performed, and the items of a fan-out behind
// it do not wait for one another.
func TestHeldPreparationsKeepNothingElseBack(t *testing.T) {
	b := newBench(t)
	b.e.Parallel = 2
	h := newHeld(b, func(x protocol.Turn) bool { return true })
	quick := make(chan struct{})
	b.e.Watch = func(u api.Update) {
		if d, ok := u.Data.(protocol.StepCompleted); ok && d.Status == protocol.StepOK && u.Step == "quick#1" {
			close(quick)
		}
	}
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Inputs: protocol.JSON("{}"), Workspace: b.dir, Program: b.load(`
wf: 1
name: wide
roles:
  list: {set: {all: "${{ 0..19 }}"}}
  a: {prompt: You work., model: x/y}
  quick: {run: "sleep 0.1"}
edges:
  - {from: START, to: [list, quick]}
  - {from: list, to: a, for_each: output.all, prompt: "item ${{ item }}"}
  - {from: [a, quick], to: END}
`)})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := b.e.Drive(t.Context(), id, engine.DriveOptions{})
		over <- err
	}()
	for range 20 {
		<-h.held
	}
	<-quick
	close(h.release)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	v := b.view(id)
	if v.Status != done || len(h.began) != 20 {
		t.Fatalf("%s (%s), %d items", v.Status, v.Reason, len(h.began))
	}
	for _, x := range h.began {
		if want := "recalled for item " + string(x.Item.Value); x.History.Visit.Inject != want {
			t.Errorf("%s reads %q, want %q", x.Step, x.History.Visit.Inject, want)
		}
	}
	entries := b.entries(id)
	if n := len(slices.DeleteFunc(entries, func(x protocol.Entry) bool { return x.Type != protocol.EvHeld })); n != 20 {
		t.Errorf("%d holds are journaled, want 20", n)
	}
}

// A visit whose preparation goes on beside the run is not active meanwhile, and that is no part of its time.
func TestAPreparationThatIsHeldIsNoTimeOfARun(t *testing.T) {
	b := newBench(t)
	b.under(0)
	h := newHeld(b, func(x protocol.Turn) bool { return true })
	clock := b.e.Performers[protocol.ActRun].(byProvider).clock
	go func() {
		for range 2 {
			<-h.held
			clock.Add(int64(time.Hour))
			h.release <- struct{}{}
		}
	}()
	_, v := b.run(twiceYAML, nil)
	if v.Status != done || v.ActiveMS != 0 || v.Steps[0].MS != 0 || v.Steps[2].MS != 0 {
		t.Errorf("%s, active for %d ms, its steps for %d and %d", v.Status, v.ActiveMS, v.Steps[0].MS, v.Steps[2].MS)
	}
}
