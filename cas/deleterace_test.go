package cas

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"wf/protocol"
)

// A fork is decided on what was read before: by then the run may be deleted, and its events collected.
func TestARunThatWasDeletedIsNotForked(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	j := sampleRun(t, s, "one", 40)
	var at protocol.Entry
	for e, err := range s.After(ctx, "one", 50) {
		if err != nil {
			t.Fatal(err)
		}
		at = e
		break
	}
	bury(t, s, "one")
	must(GC(ctx, s, GCOptions{Grace: time.Hour}))
	wantHas(t, s, false, at.CID)
	if _, err := j.Fork(ctx, 1, "fork", at, []Draft{{Data: protocol.Forked{}}}, nil, nil); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("a fork of it: %v", err)
	}
	if h := must(s.Head(ctx, "run/fork")); h.Link.Defined() {
		t.Error("the fork is there")
	}
	if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
		t.Error(r.Findings)
	}
}

// Of those that delete, fork and collect a run at once one deletes it, and each fork that was made is whole.
func TestARunIsDeletedOnceWhileItIsForkedAndCollected(t *testing.T) {
	for round := range 10 {
		s := openSample(t)
		ctx := t.Context()
		sampleRun(t, s, "one", 8)
		head := must(s.Head(ctx, "run/one"))
		var at protocol.Entry
		for e, err := range s.After(ctx, "one", 9) {
			if err != nil {
				t.Fatal(err)
			}
			at = e
			break
		}
		const each = 3
		deleted, forked := make([]error, each), make([]error, each)
		var all sync.WaitGroup
		for i := range each { // each as another process does
			other := must(Open(ctx, s.Dir(), Options{Wait: 5 * time.Minute}))
			t.Cleanup(func() { _ = other.Close() })
			j := must(other.Journal(ctx, "one"))
			d := must(Bury(head, protocol.Tombstone{By: fmt.Sprint(i), At: 1}))
			all.Go(func() { deleted[i] = other.Commit(ctx, Batch{Deletes: []Deletion{d}}) })
			all.Go(func() {
				_, forked[i] = j.Fork(ctx, 1, protocol.RunID(fmt.Sprint("fork", i)), at, []Draft{{Data: protocol.Forked{}}}, nil, nil)
			})
			all.Go(func() {
				if _, err := GC(ctx, other, GCOptions{Grace: time.Hour}); err != nil && !errors.Is(err, protocol.ErrBusy) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		did := 0
		for i := range each {
			if deleted[i] == nil {
				did++
			} else if !errors.Is(deleted[i], protocol.ErrRunDeleted) {
				t.Errorf("round %d: %v", round, deleted[i])
			}
			h := must(s.Head(ctx, fmt.Sprint("run/fork", i)))
			if forked[i] != nil && !errors.Is(forked[i], protocol.ErrRunDeleted) || h.Link.Defined() != (forked[i] == nil) {
				t.Errorf("round %d: fork %d: %v, %v", round, i, forked[i], h)
			}
		}
		if did != 1 {
			t.Errorf("round %d: it was deleted %d times", round, did)
		}
		must(GC(ctx, s, GCOptions{}))
		if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
			t.Fatalf("round %d: %v", round, r.Findings)
		}
	}
}

// What is deleted while a collection works is collected by the next one, whichever of its operations it was.
func TestADeletionDuringACollectionHolds(t *testing.T) {
	for n := 1; ; n += cutOff() {
		s := openSample(t)
		ctx := t.Context()
		sampleRun(t, s, "stays", 10)
		sampleRun(t, s, "goes", 40)
		sampleRunOf(t, s, "went", 40, func(v int) string { return fmt.Sprint("went", v, randomText(9000+v)) })
		bury(t, s, "went")
		other := must(Open(ctx, s.Dir(), Options{Wait: time.Minute}))
		t.Cleanup(func() { _ = other.Close() })
		head := must(s.Head(ctx, "run/goes"))
		count := 0
		s.opts.Before = func(op Op) error {
			if op != OpRewrite {
				return nil
			}
			if count++; count == n {
				bury(t, other, "goes")
			}
			return nil
		}
		r := must(GC(ctx, s, GCOptions{Grace: time.Hour}))
		s.opts.Before = nil
		if count < n {
			if n < 3 || !r.Compacted {
				t.Fatalf("%d operations, %+v", count, r)
			}
			return
		}
		if h := must(s.Head(ctx, "run/goes")); h.Link.Defined() || must(Tombstone(ctx, s, "goes")) == nil {
			t.Fatalf("operation %d: the run is there again", n)
		}
		must(GC(ctx, s, GCOptions{Grace: time.Hour}))
		wantHas(t, s, false, head.Link)
		if v := must(Verify(ctx, s, VerifyOptions{All: true})); !v.OK {
			t.Fatalf("operation %d: %v", n, v.Findings)
		}
	}
}

// A backup has the runs that there were when it read the heads, also those that are deleted while it is made.
func TestADeletionDuringABackupComesWithTheNextOne(t *testing.T) {
	s := toBackUp(t)
	ctx, dir := t.Context(), t.TempDir()
	other := must(Open(ctx, s.Dir(), Options{Wait: time.Minute}))
	t.Cleanup(func() { _ = other.Close() })
	was := everything(t, s)
	gone := false
	s.opts.Before = func(op Op) error {
		if op == OpBackup && !gone {
			gone = true
			bury(t, other, "one")
			if _, err := GC(ctx, other, GCOptions{}); !errors.Is(err, protocol.ErrBusy) {
				t.Errorf("a collection: %v", err)
			}
		}
		return nil
	}
	must(Backup(ctx, s, dir, BackupOptions{}))
	s.opts.Before = nil
	if got := everything(t, restored(t, dir)); !gone || !maps.Equal(got, was) {
		t.Errorf("%v, want %v", got, was)
	}
	must(GC(ctx, s, GCOptions{}))
	now := everything(t, s)
	must(Backup(ctx, s, dir, BackupOptions{}))
	if got := everything(t, restored(t, dir)); !maps.Equal(got, now) {
		t.Errorf("then %v, want %v", got, now)
	}
}

// A clock that goes back, or was wrong for a while, shortens no grace period.
func TestAClockThatJumpsShortensNoGrace(t *testing.T) {
	ctx := t.Context()
	now := int64(1_700_000_000_000_000)
	s := must(Open(ctx, filepath.Join(t.TempDir(), "store"), Options{Now: func() int64 { return now }}))
	t.Cleanup(func() { _ = s.Close() })
	sampleRun(t, s, "one", 3)
	hours := func(n int64) int64 { return n * time.Hour.Microseconds() }
	start := now
	named := Raw([]byte("stored, and about to be named"))
	for _, c := range []struct {
		at   int64
		kept bool
	}{
		{start + hours(100_000), true}, // wrong by years: what is stored now was noted by no collection
		{start, true},                  // set right: the note from the future is none of an hour ago
		{start - hours(100_000), true},
		{start + hours(1) - 1, true},
		{start + hours(1), false},
	} {
		now = c.at
		if c.at == start+hours(100_000) {
			must(GC(ctx, s, GCOptions{Grace: time.Hour}))
			commitBlocks(t, s, named)
		}
		must(GC(ctx, s, GCOptions{Grace: time.Hour}))
		wantHas(t, s, c.kept, named.Link)
	}
	if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
		t.Error(r.Findings)
	}
}
