package castest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// oneDriver claims runs from two stores, as if of two processes.
func oneDriver(t *testing.T, open func() Store) {
	ctx := t.Context()
	stores := []Store{open(), open()}
	driven := func(run protocol.RunID, want bool) {
		t.Helper()
		for i, s := range stores {
			if got := must(s.Driven(ctx, run))(t); got != want {
				t.Errorf("store %d: run %s is driven: %t, want %t", i, run, got, want)
			}
			if err := s.Undriven(ctx, run); errors.Is(err, protocol.ErrRunLive) != want || err != nil && !want {
				t.Errorf("store %d: Undriven of run %s: %v, want an error: %t", i, run, err, want)
			}
		}
	}
	driven("r1", false)
	claim := must(stores[0].Claim(ctx, "r1"))(t)
	driven("r1", true)
	driven("r2", false)
	for i, s := range stores {
		if _, err := s.Claim(ctx, "r1"); !errors.Is(err, protocol.ErrRunLive) || !strings.Contains(err.Error(), "process") {
			t.Errorf("store %d: a second driver: %v", i, err)
		}
	}
	if err := must(stores[1].Claim(ctx, "r2"))(t).Release(ctx); err != nil {
		t.Error(err)
	}
	driven("r1", true)
	acting, end, err := claim.Acting(ctx)
	if err != nil || acting.Err() != nil {
		t.Errorf("nothing may act under a claim: %v", err)
	}
	end()
	for range 2 { // the second is of no effect
		if err := claim.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	driven("r1", false)
	driven("r2", false)
	claim = must(stores[1].Claim(ctx, "r1"))(t)
	driven("r1", true)
	if err := claim.Release(ctx); err != nil {
		t.Error(err)
	}
	for _, bad := range []protocol.RunID{"", "../x", "a/b", ".hidden", "-x", "a:b", "a b", "a\x1b[2J"} {
		if _, err := stores[0].Claim(ctx, bad); err == nil {
			t.Errorf("run id %q was taken", bad)
		}
		if _, err := stores[0].Driven(ctx, bad); err == nil {
			t.Errorf("run id %q was looked for", bad)
		}
	}
	var claims sync.WaitGroup
	var holders, most, times atomic.Int64
	for i := range 8 {
		claims.Go(func() {
			for range 20 {
				c, err := stores[i%2].Claim(ctx, "r1")
				if errors.Is(err, protocol.ErrRunLive) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				times.Add(1)
				most.Store(max(most.Load(), holders.Add(1)))
				holders.Add(-1)
				if err := c.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	claims.Wait()
	if most.Load() != 1 || times.Load() == 0 {
		t.Errorf("%d had the claim at once, %d in all", most.Load(), times.Load())
	}
	driven("r1", false)
}

// underClaim writes a run and a sub-workflow under the claim on the run.
func underClaim(t *testing.T, open func() Store) {
	s, other, ctx := open(), open(), t.Context()
	claim := must(s.Claim(ctx, "root"))(t)
	root, child := must(s.Journal(ctx, "root"))(t), must(s.Journal(ctx, "child"))(t)
	for _, j := range []*cas.Journal{root, child} {
		j.Under(claim.Fence())
		Append(t, j, 3)
	}
	part := must(s.Claim(ctx, "child"))(t) // this process drives the tree already
	if part.Fence() != claim.Fence() {
		t.Error("a sub-workflow is written under another claim than its root")
	}
	if _, err := other.Claim(ctx, "child"); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("another process drives a sub-workflow: %v", err)
	}
	fenced := claim.Fence() != cas.Fence{}
	if _, err := other.Claim(ctx, "root"); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("another process drives the run: %v", err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if fenced { // the tree is claimed until nothing of it is driven any more
		if _, err := other.Claim(ctx, "root"); !errors.Is(err, protocol.ErrRunLive) {
			t.Errorf("another process drives the root of a sub-workflow that is driven: %v", err)
		}
	}
	Append(t, child, 1)
	if err := part.Release(ctx); err != nil {
		t.Fatal(err)
	}
	next := must(other.Claim(ctx, "child"))(t)
	if _, err := root.Append(ctx, Now, []cas.Draft{{Data: protocol.ResumedBy{}}}, nil); errors.Is(err, protocol.ErrFenced) != fenced {
		t.Errorf("under a claim that was released: %v", err)
	}
	j := must(other.Journal(ctx, "child"))(t)
	j.Under(next.Fence())
	Append(t, j, 1)
	answer := must(s.Journal(ctx, "child"))(t) // under no claim
	Append(t, answer, 1)
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
}

func claimOfDeleted(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	Append(t, must(s.Journal(ctx, "r1"))(t), 5)
	claim := must(s.Claim(ctx, "r1"))(t)
	d := must(cas.Bury(must(s.Head(ctx, "run/r1"))(t), protocol.Tombstone{At: Now}))(t)
	if err := s.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}}); err != nil {
		t.Fatal(err)
	}
	if err := s.DropLock(ctx, "r1"); err != nil {
		t.Error(err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Error(err)
	}
	if driven := must(s.Driven(ctx, "r1"))(t); driven {
		t.Error("a run that was deleted is driven")
	}
}

// Stoppable is a store with a worker that can be stopped for longer than others wait for it: nothing of it reaches the
// database until wake is called.
type Stoppable struct {
	Store
	Stop func() (wake func())
}

// ExerciseTakeover checks a store whose claims others take over: open opens it once more, as another process does.
func ExerciseTakeover(t *testing.T, open func(t *testing.T) Stoppable) {
	draft := []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}
	t.Run("a worker that is stopped for longer than a lease is fenced", func(t *testing.T) {
		ctx := t.Context()
		first, second := open(t), open(t)
		claim := must(first.Claim(ctx, "root"))(t)
		journals := map[protocol.RunID]*cas.Journal{}
		for _, run := range []protocol.RunID{"root", "child"} {
			journals[run] = must(first.Journal(ctx, run))(t)
			journals[run].Under(claim.Fence())
			Append(t, journals[run], 3)
		}
		part := must(first.Claim(ctx, "child"))(t)
		acting, end, err := claim.Acting(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		wake := first.Stop()
		late := make(chan error, 2)
		for _, run := range []protocol.RunID{"root", "child"} {
			go func() {
				_, err := journals[run].Append(ctx, Now, draft, []cas.Block{cas.Raw(fmt.Append(nil, "late, of ", run))})
				late <- err
			}()
		}
		var next cas.Claim
		for next == nil {
			if next, err = second.Claim(ctx, "child"); err != nil && !errors.Is(err, protocol.ErrRunLive) {
				t.Fatal(err)
			}
		}
		select {
		case <-acting.Done():
			if context.Cause(acting) != cas.ErrAged {
				t.Errorf("it ended with: %v", context.Cause(acting))
			}
		default:
			t.Error("what acts under the claim goes on, and another worker has it")
		}
		j := must(second.Journal(ctx, "root"))(t)
		j.Under(next.Fence())
		Append(t, j, 2)
		wake()
		for range 2 {
			if err := <-late; !errors.Is(err, protocol.ErrFenced) || !strings.Contains(err.Error(), "process ") {
				t.Errorf("a worker that was stopped writes: %v", err)
			}
		}
		for run, want := range map[protocol.RunID]int{"root": 5, "child": 3} {
			if got := must(Events(ctx, second, run, 0))(t); len(got) != want {
				t.Errorf("run %s has %d events, want %d", run, len(got), want)
			}
			if ok := must(Has(ctx, second, cas.Raw(fmt.Append(nil, "late, of ", run)).Link))(t); ok {
				t.Errorf("run %s: a block of the worker that was stopped is stored", run)
			}
		}
		for _, c := range []cas.Claim{claim, part} {
			if _, _, err := c.Acting(ctx); !errors.Is(err, protocol.ErrFenced) {
				t.Errorf("something may act under a claim that was taken over: %v", err)
			}
			if err := c.Release(ctx); err != nil { // not that of the successor
				t.Error(err)
			}
		}
		Append(t, j, 1)
		if driven := must(first.Driven(ctx, "child"))(t); !driven {
			t.Error("the successor does not drive")
		}
		patient := cas.Patient(ctx, ctx) // its last beat may have failed
		if _, err := first.Claim(patient, "root"); !errors.Is(err, protocol.ErrRunLive) {
			t.Errorf("the run is claimed again from its successor: %v", err)
		}
		if err := next.Release(ctx); err != nil {
			t.Fatal(err)
		}
		again := must(first.Claim(patient, "root"))(t)
		if _, end, err := again.Acting(ctx); err != nil {
			t.Errorf("a worker that was stopped may not act later: %v", err)
		} else {
			end()
		}
		if err := again.Release(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("a worker that comes back in time goes on", func(t *testing.T) {
		ctx := t.Context()
		first := open(t)
		claim := must(first.Claim(ctx, "r1"))(t)
		j := must(first.Journal(ctx, "r1"))(t)
		j.Under(claim.Fence())
		Append(t, j, 3)
		acting, end, err := claim.Acting(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		wake := first.Stop()
		<-acting.Done() // nobody else is there to take it over
		wake()
		if _, end, err := claim.Acting(ctx); err != nil { // waits until it is certain
			t.Errorf("nothing may act any more: %v", err)
		} else {
			end()
		}
		Append(t, j, 1)
		if err := claim.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}
