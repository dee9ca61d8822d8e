package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// begun starts a workflow that is driven in the background until drive's error comes.
func (b *bench) begun(yaml string, when func(api.Update) bool) (id protocol.RunID, reached <-chan struct{}, over <-chan error) {
	b.t.Helper()
	id, _, err := b.e.Begin(context.Background(), engine.Launch{Program: b.load(yaml), Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		b.t.Fatal(err)
	}
	there, end := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	b.e.Watch = func(n api.Update) {
		if when(n) {
			once.Do(func() { close(there) })
		}
	}
	go func() {
		_, err := b.e.Drive(context.Background(), id, engine.DriveOptions{})
		end <- err
	}()
	return id, there, end
}

// types are the events of a run, as type and step.
func (b *bench) types(id protocol.RunID) string {
	b.t.Helper()
	var out []string
	for x, err := range b.e.Store.After(context.Background(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(string(x.Type)+" "+x.StepName()))
	}
	return strings.Join(out, ", ")
}

// speaks tells when a command has said something: it runs.
func speaks(n api.Update) bool {
	_, ok := n.Data.(protocol.Delta)
	return ok
}

// An interruption is recorded, however early it comes: what was said to be suspended is not found
// as a run that no process drives.
func TestADriveThatIsInterruptedAtOnceIsRecorded(t *testing.T) {
	b := newBench(t)
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load("wf: 1\nname: slow\nroles: {a: {" + slowCommand + "}}\n"), Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	st, err := b.e.Drive(ctx, id, engine.DriveOptions{})
	if !errors.Is(err, context.Canceled) || st == nil || st.Status() != protocol.Suspended {
		t.Fatalf("the drive ended with %v", err)
	}
	if got := b.types(id); got != "run_started, suspended" {
		t.Errorf("events: %s", got)
	}
}

const slowCommand = "run: 'echo x; sleep 60', timeout: 5m"

func TestACommandThatWasStoppedWithItsRunSaysNothingMore(t *testing.T) {
	b := newBench(t)
	id, reached, over := b.begun("wf: 1\nname: long\nroles:\n  a: {"+slowCommand+"}\n", speaks)
	<-reached
	if err := b.e.Cancel(context.Background(), id, "test", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if got, want := b.types(id), "run_started, step_started a#1, cancelled"; got != want {
		t.Errorf("the journal is %s, want %s", got, want)
	}
	v := b.view(id)
	if got := strings.Join(steps(v), ", "); v.Status != protocol.Cancelled || v.Reason != "enough" || got != "a#1 parked" {
		t.Errorf("%s (%s): %s", v.Status, v.Reason, got)
	}
}

func TestARunThatFailsSaysWhyAndStopsItsCommands(t *testing.T) {
	b := newBench(t)
	_, v := b.run("wf: 1\nname: fails\nroles:\n  s: {set: {n: 1}}\n  a: {"+slowCommand+"}\n  b: {set: {n: 1}}\nedges:\n"+
		"  - {from: s, to: [a, b]}\n  - {from: a, to: END}\n  - {from: b, to: FAIL}\n", nil)
	if got := strings.Join(steps(v), ", "); v.Status != protocol.Failed || v.Reason != "b#1 led to FAIL" || got != "s#1 ok, a#1 parked, b#1 ok" {
		t.Errorf("%s (%s): %s", v.Status, v.Reason, got)
	}
	_, v = b.run("wf: 1\nname: fails\nroles:\n  a: {set: {n: 1}}\nedges:\n  - {from: a, to: a, limit: 2, on_limit: FAIL}\n", nil)
	if v.Status != protocol.Failed || v.Reason != "edge 1 (a → a) reached its limit of 2, which leads to FAIL" {
		t.Errorf("%s (%s)", v.Status, v.Reason)
	}
}

// A limit stops what runs; raised, the command runs again, and one marked once asks first.
func TestALimitOfTimeStopsWhatRunsAndRaisedItGoesOn(t *testing.T) {
	for _, once := range []bool{false, true} {
		b := newBench(t)
		var late atomic.Int64
		start := time.Now()
		b.e.Now = func() time.Time { return start.Add(time.Duration(late.Load())) }
		mark := ""
		if once {
			mark = ", once: true"
		}
		id, reached, over := b.begun("wf: 1\nname: long\nlimits: {duration: 1h}\nroles:\n"+
			"  a: {run: 'echo x; test -e go || sleep 60', timeout: 5m"+mark+"}\n", speaks)
		<-reached
		late.Store(int64(2 * time.Hour))
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		if got, want := b.types(id), "run_started, step_started a#1, limit_reached, suspended"; got != want {
			t.Errorf("once %v: the journal is %s, want %s", once, got, want)
		}
		if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		raised := engine.DriveOptions{Limits: []protocol.LimitChanged{{Limit: "duration", Max: (10 * time.Hour).Microseconds()}}}
		s, err := b.e.Drive(context.Background(), id, raised)
		if err != nil {
			t.Fatal(err)
		}
		want := protocol.Done
		if once {
			want = protocol.Waiting
		}
		if s.Status() != want {
			t.Errorf("once %v: %s (%s), want %s", once, s.Status(), s.Reason(), want)
		}
	}
}

// A person who counted a command as failed can still have it run again.
func TestACommandCountedAsFailedRunsAgainWhenResumed(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := b.load("wf: 1\nname: once\nroles:\n  a: {run: 'echo x; test -e go || sleep 60', once: true, timeout: 5m}\n")
	id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	b.e.Watch = func(n api.Update) {
		if speaks(n) {
			cancel()
		}
	}
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.e.Watch = nil
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != protocol.Waiting || len(v.Waiting) != 1 || len(v.Waiting[0].Choices) != 2 {
		t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Text: "count it as failed "}); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != protocol.Suspended || !strings.Contains(v.Reason, "a person counted it as failed") {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	if v := b.drive(id); v.Status != done {
		t.Errorf("%s (%s)", v.Status, v.Reason)
	}
}
