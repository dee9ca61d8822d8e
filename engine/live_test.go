package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// held performs run roles: it goes on when it is let go.
type held struct{ release chan struct{} }

func (h held) Perform(ctx context.Context, _ protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	select {
	case <-h.release:
		return protocol.Conclusion{Data: protocol.JSON(`{"exit_code":0}`)}, nil
	case <-ctx.Done():
		return protocol.Conclusion{}, ctx.Err()
	}
}

// An answer given by another process reaches the process that drives the run.
func TestAnAnswerReachesTheLiveDriver(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	h := held{make(chan struct{})}
	b.e.Performers[protocol.ActRun] = h
	asked, after := make(chan struct{}), make(chan struct{})
	b.e.Watch = func(n api.Update) {
		if n.Entry == nil {
			return
		}
		switch {
		case n.Entry.Type == protocol.EvWaiting:
			close(asked)
		case n.Entry.Type == protocol.EvStepCompleted && n.Step == "after#1":
			close(after)
		}
	}
	p := b.load(`
wf: 1
name: live
roles:
  a: {set: {n: 1}}
  long: {run: sleep, timeout: 1m}
  gate: {ask: "Go?"}
  after: {set: {said: "${{ output.text }}"}}
  z: {set: {n: 2}}
edges:
  - {from: START, to: a}
  - {from: a, to: [long, gate]}
  - {from: gate, to: after}
  - {from: [long, after], to: z}
  - {from: z, to: END}
outputs: {said: "${{ steps.after.output.said }}"}
`)
	id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := b.e.Drive(ctx, id, engine.DriveOptions{})
		over <- err
	}()
	<-asked
	other, err := cas.Open(ctx, b.e.Store.Dir(), cas.Options{}) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := (&engine.Engine{Store: other}).Answer(ctx, id, engine.Reply{Step: "gate#1", Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	<-after // while long still runs
	close(h.release)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if v := b.view(id); v.Status != done || string(v.Outputs) != `{"said":"yes"}` {
		t.Errorf("%s (%s) %s", v.Status, v.Reason, v.Outputs)
	}
}

// Leftovers of a finished run are listed.
func TestAFinishedRunListsWhatStillWaits(t *testing.T) {
	b := newBench(t)
	_, v := b.run(`
wf: 1
name: leftovers
roles:
  a: {set: {n: 1}, route: all}
  b: {run: "exit 1", timeout: 10s, continue_on_error: true}
  c: {set: {n: 1}}
  d: {set: {n: 1}}
edges:
  - {from: START, to: a}
  - {from: a, to: [b, c]}
  - {from: a, to: END}
  - {from: b, to: END, when: output.exit_code == 1}
  - {from: [b, c], to: d}
  - {from: d, to: END}
`, nil)
	if v.Status != done || len(v.Leftovers) != 1 {
		t.Errorf("%s (%s), leftovers %q", v.Status, v.Reason, v.Leftovers)
	}
}

// unready prepares no visit until it is let.
type unready struct{ err error }

func (u *unready) Prepare(context.Context, protocol.Turn) (roles.Preparation, error) {
	return roles.Preparation{}, u.err
}

func (u *unready) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	text := "done"
	return protocol.Conclusion{Text: &text}, nil
}

// What a visit needs is not there: the run is suspended with the code, the step before it is
// kept, and a resume begins the visit.
func TestAVisitThatCannotBeginSuspendsTheRun(t *testing.T) {
	b := newBench(t)
	u := &unready{err: protocol.ErrModel}
	b.e.Performers[protocol.ActPrompt] = u
	id, v := b.run("wf: 1\nname: unready\nroles:\n  a: {run: 'echo x >>\"log\"', timeout: 1m}\n  b: {prompt: You work., model: x/y}\n", nil)
	if v.Status != protocol.Suspended || v.Code != protocol.ErrModel.Code || len(v.Steps) != 1 {
		t.Fatalf("%s (%s) %q %v", v.Status, v.Reason, v.Code, steps(v))
	}
	u.err = nil
	if v = b.drive(id); v.Status != done || len(v.Steps) != 2 {
		t.Fatalf("%s (%s) %v", v.Status, v.Reason, steps(v))
	}
	if log, err := os.ReadFile(filepath.Join(b.dir, "log")); err != nil || string(log) != "x\n" {
		t.Errorf("the command before it ran again: %q %v", log, err)
	}
}

// Others write to a run while it is driven, and what is under way then is written behind it:
// nothing is lost, and the records are those of a run that nobody disturbed.
func TestOthersWriteToARunThatIsDriven(t *testing.T) {
	ctx := context.Background()
	const steps, messages = 60, 12
	yaml := pingPong(steps, 16)
	undisturbed := newBench(t)
	_, want := undisturbed.run(yaml, nil)

	b := newBench(t)
	p := b.load(yaml)
	in, err := p.Inputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Source: []byte(yaml), Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	// Whoever writes is at most one message behind what the driver does, and the driver does not
	// end before the last one is in.
	other := &engine.Engine{Store: b.e.Store}
	begun, sent := make(chan struct{}, 1), make(chan struct{})
	var failed error
	b.e.Watch = func(api.Update) {
		select {
		case begun <- struct{}{}:
		case <-sent:
		}
	}
	go func() {
		defer close(sent)
		for range messages {
			<-begun
			failed = errors.Join(failed, other.Message(ctx, id, "sensor", "hot"))
		}
	}()
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); err != nil {
		t.Fatal(err)
	}
	if <-sent; failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff(conclusions(want), conclusions(b.view(id))); diff != "" {
		t.Error(diff)
	}
	b.sound(id)
	heard := 0
	for _, x := range b.entries(id) {
		if x.Type == protocol.EvMessage {
			heard++
		}
	}
	if heard != messages {
		t.Errorf("%d of %d messages are in the journal", heard, messages)
	}
}
