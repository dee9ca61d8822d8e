package engine_test

import (
	"context"
	"testing"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// lastWords is an agent that has something to say when it is stopped.
type lastWords struct {
	begun chan struct{}
	heard error // what emitting it gave
	seen  []protocol.EventType
}

func (l *lastWords) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	for _, e := range turn.Transcript {
		l.seen = append(l.seen, e.Type)
	}
	if len(l.seen) > 0 {
		text := "done"
		return protocol.Conclusion{Text: &text}, nil
	}
	close(l.begun)
	<-ctx.Done()
	l.heard = emit(context.WithoutCancel(ctx), protocol.TextSaid{Content: protocol.NewText("stopped")})
	return protocol.Conclusion{}, ctx.Err()
}

func stopping(t *testing.T) (*bench, *lastWords, protocol.RunID) {
	b := newBench(t)
	l := &lastWords{begun: make(chan struct{})}
	b.e.Performers[protocol.ActPrompt] = l
	p := b.load("wf: 1\nname: long\nroles:\n  a: {prompt: You work., model: x/y}\n")
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	return b, l, id
}

// Nothing stands behind the event that cancels a run.
func TestACancelledRunTakesNoMoreEvents(t *testing.T) {
	b, l, id := stopping(t)
	over := make(chan error, 1)
	go func() {
		_, err := b.e.Drive(t.Context(), id, engine.DriveOptions{})
		over <- err
	}()
	<-l.begun
	if err := b.e.Cancel(t.Context(), id, "test", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	all := b.entries(id)
	if last := all[len(all)-1].Type; last != protocol.EvCancelled || l.heard == nil {
		t.Errorf("the last event is %s; emitting one more gave %v", last, l.heard)
	}
}

// A visit of a run that was interrupted has its last words recorded, and when it goes on it is
// told that the run was suspended, not that a process died.
func TestAnInterruptedVisitSeesThatItWasSuspended(t *testing.T) {
	b, l, id := stopping(t)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		<-l.begun
		interrupt()
	}()
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); err == nil || l.heard != nil {
		t.Fatalf("drive: %v, last words: %v", err, l.heard)
	}
	if v := b.drive(id); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	want := []protocol.EventType{protocol.EvStepStarted, protocol.EvText, protocol.EvSuspended, protocol.EvResumed, protocol.EvStepStarted}
	if len(l.seen) != len(want) {
		t.Fatalf("it sees %v", l.seen)
	}
	for i := range want {
		if l.seen[i] != want[i] {
			t.Errorf("it sees %v, want %v", l.seen, want)
			break
		}
	}
}
