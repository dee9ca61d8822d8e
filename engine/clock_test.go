package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// A clock that jumps back and ahead leaves a journal whose times never fall, spans that are not
// negative, and a run that concludes the same.
func TestAClockThatJumpsHarmsNoRun(t *testing.T) {
	straight := newBench(t)
	_, want := straight.run(loopYAML, nil)

	b := newBench(t)
	day, calls := 24*time.Hour, 0
	start := time.Now()
	b.e.Now = func() time.Time {
		calls++
		switch calls % 4 {
		case 1:
			return start.Add(-day)
		case 2:
			return start.Add(time.Duration(calls) * time.Millisecond)
		case 3:
			return time.Unix(0, 0)
		}
		return start.Add(day)
	}
	id, v := b.run(loopYAML, nil)
	if v.Status != done || *v.Result != *want.Result {
		t.Fatalf("%s (%s) %v, want the result %v", v.Status, v.Reason, v.Result, want.Result)
	}
	last := int64(0)
	for _, x := range b.entries(id) {
		if x.TS < last {
			t.Errorf("event %d is %d µs older than the one before", x.Seq, last-x.TS)
		}
		last = x.TS
	}
	for _, s := range v.Steps {
		if s.MS < 0 {
			t.Errorf("%s took %d ms", s.ID, s.MS)
		}
	}
	if v.ActiveMS < 0 {
		t.Errorf("active for %d ms", v.ActiveMS)
	}
	if r, err := b.e.Check(context.Background(), id, nil); err != nil || !r.OK() {
		t.Errorf("checked again: %v %+v", err, r)
	}
}

// Time that a jump ahead seems to take counts, as nobody can tell it from time that passed: the
// run is suspended by its duration and goes on with a higher one.
func TestAClockThatJumpsAheadReachesTheDurationAtMost(t *testing.T) {
	b := newBench(t)
	now := time.Now()
	b.e.Now = func() time.Time { now = now.Add(time.Minute); return now }
	id, v := b.run("wf: 1\nname: jump\nlimits: {duration: 3m}\nroles:\n  a: {run: 'true', timeout: 1h}\n  b: {run: 'true', timeout: 1h}\n  c: {run: 'true', timeout: 1h}\n", nil)
	if v.Suspended != protocol.ByLimit {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	b.e.Now = nil
	if _, err := b.e.Drive(context.Background(), id, engine.DriveOptions{Limits: []protocol.LimitChanged{{Limit: "duration", Max: (10000 * time.Hour).Microseconds()}}}); err != nil {
		t.Fatal(err)
	}
	if v = b.view(id); v.Status != done {
		t.Errorf("%s (%s)", v.Status, v.Reason)
	}
}

// emitting is a performer made of a function that emits.
type emitting func(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error)

func (f emitting) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	return f(ctx, turn, emit)
}

// A timer may fire between the event that says what a visit waits for and the return of its
// performer: the visit goes on.
func TestATimerThatFiresBeforeItsVisitReturnsIsTaken(t *testing.T) {
	b := newBench(t)
	fired := make(chan struct{})
	b.e.Watch = func(n api.Update) {
		if n.Entry != nil && n.Entry.Type == protocol.EvTimerFired {
			close(fired)
		}
	}
	b.e.Performers[protocol.ActWait] = emitting(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		if len(turn.Answers) > 0 {
			return protocol.Conclusion{Data: protocol.JSON(`{"fired":true}`)}, nil
		}
		if err := emit(ctx, protocol.WaitingFor{Kind: protocol.WaitTimer, Due: 1}); err != nil {
			return protocol.Conclusion{}, err
		}
		<-fired
		return protocol.Conclusion{}, fmt.Errorf("%s: %w", turn.Step, protocol.ErrWaiting)
	})
	_, v := b.run("wf: 1\nname: moment\nroles: {a: {wait: 1ms}}\n", nil)
	if v.Status != done {
		t.Errorf("%s (%s): %v", v.Status, v.Reason, steps(v))
	}
}
