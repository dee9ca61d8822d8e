package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// killed is a bench with the store as it was when the role at began to be performed, and a clock that shows a day later:
// that of a process which finds a run whose process was killed.
func killed(t *testing.T, yaml, at string, setup func(*bench), turn func(*bench, protocol.RunID)) (*bench, protocol.RunID) {
	b, after := newBench(t), &bench{t: t, dir: t.TempDir()}
	if setup != nil {
		setup(b)
	}
	by := b.e.Performers[protocol.ActSet]
	b.e.Performers[protocol.ActSet] = performer(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		if turn.Role.Name != at {
			return by.Perform(ctx, turn, emit)
		}
		if err := emit(ctx, protocol.TextSaid{Content: protocol.NewText("I begin")}); err != nil { // now it is on disk
			return protocol.Conclusion{}, err
		}
		if err := os.CopyFS(filepath.Join(after.dir, ".wf"), os.DirFS(filepath.Join(b.dir, ".wf"))); err != nil {
			t.Error(err)
		}
		return by.Perform(ctx, turn, emit)
	})
	id, _ := b.run(yaml, nil)
	after.open()
	after.e.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	if turn != nil {
		turn(after, id)
	}
	return after, id
}

// What a person asks of a run whose process was killed tells nothing of the time since: that is not counted.
func TestTheTimeAfterAKillIsNotCounted(t *testing.T) {
	ctx := context.Background()
	const graph = "wf: 1\nname: dead\nlimits: {duration: 1h}\nroles:\n  a: {set: {n: 1}}\n  b: {set: {n: 2}}\n"
	goesOn := func(o engine.DriveOptions) func(*bench, protocol.RunID) {
		return func(b *bench, id protocol.RunID) {
			if _, err := b.e.Drive(ctx, id, o); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	check := func(name string, b *bench, id protocol.RunID, status protocol.RunStatus) {
		t.Helper()
		v := b.view(id)
		if v.Status != status || len(v.CleanupFailed) > 0 || v.ActiveMS > 3_600_000 {
			t.Errorf("%s: %s (%s), active for %d ms, %v: %s", name, v.Status, v.Reason, v.ActiveMS, cleanups(v), b.types(id))
		}
		b.checked(id)
	}
	b, id := killed(t, graph, "a", nil, goesOn(engine.DriveOptions{Limits: []protocol.LimitChanged{{Limit: "steps", Max: 90}}}))
	check("resumed with a higher limit", b, id, protocol.Done)

	b, id = killed(t, closingYAML, "tidy", nil, func(b *bench, id protocol.RunID) {
		if err := b.e.Cancel(ctx, id, "ada", "no need"); err != nil {
			t.Fatal(err)
		}
	})
	check("cancelled once while it closes", b, id, protocol.Done)

	b, id = killed(t, closingYAML, "tidy", nil, func(b *bench, id protocol.RunID) {
		if err := b.e.Restored(ctx, id, "yesterday"); err != nil {
			t.Fatal(err)
		}
		b.drive(id)
	})
	check("restored while it closes", b, id, protocol.Done)

	b, id = killed(t, graph, "a", nil, func(b *bench, id protocol.RunID) {
		if err := b.e.Restored(ctx, id, "yesterday"); err != nil {
			t.Fatal(err)
		}
		b.drive(id)
	})
	check("restored", b, id, protocol.Done)

	b, id = killed(t, graph, "a", nil, func(b *bench, id protocol.RunID) {
		entries := b.entries(id)
		fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: entries[len(entries)-1].Seq})
		if err != nil {
			t.Fatal(err)
		}
		if v := b.drive(fork); v.Status != protocol.Done || v.ActiveMS > 3_600_000 {
			t.Errorf("forked: %s (%s), active for %d ms", v.Status, v.Reason, v.ActiveMS)
		}
		b.drive(id)
	})
	check("driven", b, id, protocol.Done)
}

// What a person writes while a run is driven takes none of its time away.
func TestTheTimeBeforeAMessageIsCounted(t *testing.T) {
	b, c := closingBench(t)
	c.hold["tidy"] = true
	later := make(chan time.Duration, 1)
	later <- 0
	now := func(d time.Duration) time.Time { x := <-later; later <- x + d; return time.Now().Add(x + d) }
	b.e.Now = func() time.Time { return now(0) }
	id, _, over := b.begun(closingYAML, func(api.Update) bool { return false })
	<-c.at
	now(time.Minute)
	if _, err := b.e.CancelSoon(context.Background(), id, "ada", "stop"); err != nil {
		t.Fatal(err)
	}
	now(time.Minute)
	if err := b.e.Cancel(context.Background(), id, "ada", "now"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if v := b.view(id); v.ActiveMS < 120_000 || v.ActiveMS > 180_000 {
		t.Errorf("active for %d ms", v.ActiveMS)
	}
	b.checked(id)
}

// An always role that is kept back by the limits of a provider takes of the time that always roles have.
func TestAHeldAlwaysRoleEndsWithTheTimeOfClosing(t *testing.T) {
	b, c := closingBench(t)
	later := make(chan time.Duration, 1)
	later <- 0
	b.e.Now = func() time.Time { x := <-later; later <- x; return time.Now().Add(x) }
	b.e.Performers[protocol.ActSet] = performer(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		if turn.Role.Name != "tidy" {
			return c.Perform(ctx, turn, emit)
		}
		if err := emit(ctx, protocol.Held{Provider: "openai", Limit: protocol.HeldByRequests, Max: 1}); err != nil {
			return protocol.Conclusion{}, err
		}
		<-later
		later <- protocol.ClosingTime * time.Microsecond
		<-ctx.Done()
		return protocol.Conclusion{}, ctx.Err()
	})
	id, v := b.run(closingYAML, nil)
	if v.Status != protocol.Done || len(v.CleanupFailed) != 2 || v.CleanupFailed[0].Code != protocol.SkippedByBudget {
		t.Errorf("%s %v: %s", v.Status, cleanups(v), b.types(id))
	}
	b.checked(id)
}
