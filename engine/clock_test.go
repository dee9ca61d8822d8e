package engine_test

import (
	"context"
	"testing"
	"time"

	"wf/engine"
	"wf/protocol"
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
