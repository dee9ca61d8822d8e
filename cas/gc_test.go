package cas

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

func collect(t *testing.T, s *Store, o GCOptions) GCReport {
	t.Helper()
	r, err := GC(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, v)
	return r
}

func commitBlocks(t *testing.T, s *Store, blocks ...Block) {
	t.Helper()
	if err := s.Commit(t.Context(), Batch{Blocks: blocks}); err != nil {
		t.Fatal(err)
	}
}

func wantHas(t *testing.T, s *Store, want bool, links ...protocol.Link) {
	t.Helper()
	for _, l := range links {
		_, err := s.Block(t.Context(), l)
		if has := err == nil; has != want || err != nil && !errors.Is(err, protocol.ErrNotFound) {
			t.Errorf("block %s is there: %v, %v; want %v", l, has, err, want)
		}
	}
}

func blobFiles(t *testing.T, s *Store) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir(), dirBlobs, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestGCRemovesWhatNothingReachesAndKeepsTheRest(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 4)
	blobs := blobFiles(t, s)
	if r := collect(t, s, GCOptions{}); r.Removed != 0 || r.Kept == 0 {
		t.Errorf("nothing to remove: %+v", r)
	}
	small, large := Raw([]byte("nobody wants this")), Raw([]byte(randomText(300<<10)))
	commitBlocks(t, s, small, large)
	dry := collect(t, s, GCOptions{DryRun: true})
	if dry.Removed != 2 || dry.Bytes != int64(len(small.Data)+len(large.Data)) {
		t.Errorf("dry run: %+v", dry)
	}
	wantHas(t, s, true, small.Link, large.Link)
	if r := collect(t, s, GCOptions{}); r.Removed != 2 || r.Blobs != 1 || r.Kept != dry.Kept {
		t.Errorf("gc: %+v", r)
	}
	wantHas(t, s, false, small.Link, large.Link)
	if n := blobFiles(t, s); n != blobs {
		t.Errorf("%d blob files, want %d", n, blobs)
	}
}

// A blob file that no pack names yet is taken by a collection right before the commit that
// counts on it: the commit writes it again.
func TestABlobThatACollectionTookIsWrittenAgain(t *testing.T) {
	var before func()
	s, err := Open(t.Context(), t.TempDir(), Options{Before: func(op Op) error {
		if op == OpApply && before != nil {
			before()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	large := Raw([]byte(randomText(300 << 10)))
	taken := 0
	before = func() {
		files, err := (&collector{s: s, clock: s.now() + time.Minute.Microseconds()}).oldFiles(t.Context())
		for _, path := range files {
			err = errors.Join(err, os.Remove(path))
			taken++
		}
		if err != nil {
			t.Error(err)
		}
	}
	commitBlocks(t, s, large)
	if before = nil; taken != 1 {
		t.Errorf("%d files were taken, want 1", taken)
	}
	wantHas(t, s, true, large.Link)
	if r := collect(t, s, GCOptions{}); r.Removed != 1 || r.Blobs != 1 {
		t.Errorf("gc: %+v", r)
	}
}

func TestGCTakesTheDeadOutOfAPackOfLiveBlocks(t *testing.T) {
	s := openSample(t)
	live, dead := Raw([]byte("live")), Raw([]byte("dead"))
	start := must(Encode(map[string]any{"live": live.Link}))
	err := s.Commit(t.Context(), Batch{Blocks: []Block{dead, live, start}, Moves: []Move{{Name: "memory/x", New: start.Link}}})
	if err != nil {
		t.Fatal(err)
	}
	if r := collect(t, s, GCOptions{}); r.Removed != 1 || r.Kept != 2 {
		t.Errorf("gc: %+v", r)
	}
	wantHas(t, s, true, live.Link, start.Link)
	wantHas(t, s, false, dead.Link)
}

func TestGCKeepsBlocksForTheGracePeriod(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), t.TempDir(), Options{Now: func() int64 { return now.UnixMicro() }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lost := Raw([]byte("lost"))
	commitBlocks(t, s, lost)
	day := GCOptions{Grace: 24 * time.Hour}
	if r := collect(t, s, day); r.Removed != 0 || r.Young != 1 {
		t.Errorf("at once: %+v", r)
	}
	now = now.Add(23 * time.Hour)
	if r := collect(t, s, day); r.Removed != 0 {
		t.Errorf("after 23 hours: %+v", r)
	}
	now = now.Add(2 * time.Hour)
	later := Raw([]byte("later"))
	commitBlocks(t, s, later)
	if r := collect(t, s, day); r.Removed != 1 || r.Young != 1 {
		t.Errorf("after 25 hours: %+v", r)
	}
	wantHas(t, s, true, later.Link)
}

func TestGCKeepsWhatAHeadPointedToLately(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), t.TempDir(), Options{Now: func() int64 { return now.UnixMicro() }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, second := must(Encode(map[string]any{"n": 1})), must(Encode(map[string]any{"n": 2}))
	for _, m := range []Move{{Name: "memory/x", New: first.Link}, {Name: "memory/x", Old: first.Link, New: second.Link}} {
		if err := s.Commit(t.Context(), Batch{Blocks: []Block{first, second}, Moves: []Move{m}}); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(13 * 24 * time.Hour)
	collect(t, s, GCOptions{})
	wantHas(t, s, true, first.Link, second.Link)
	now = now.Add(2 * 24 * time.Hour)
	collect(t, s, GCOptions{})
	wantHas(t, s, false, first.Link)
	wantHas(t, s, true, second.Link)
}

func TestGCOfADamagedStoreRemovesNothing(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 3)
	lost := Raw([]byte("lost"))
	commitBlocks(t, s, lost)
	files, err := filepath.Glob(filepath.Join(s.Dir(), dirBlobs, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no blobs: %v", err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := GC(t.Context(), s, GCOptions{}); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("err = %v", err)
	}
	wantHas(t, s, true, lost.Link)
}

func TestGCOfAStoreThatLacksAReachableBlockRemovesNothing(t *testing.T) {
	s := openSample(t)
	lost := Raw([]byte("lost"))
	start := must(Encode(map[string]any{"missing": Raw([]byte("never stored")).Link}))
	err := s.Commit(t.Context(), Batch{Blocks: []Block{lost, start}, Moves: []Move{{Name: "memory/x", New: start.Link}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := GC(t.Context(), s, GCOptions{}); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("err = %v", err)
	}
	wantHas(t, s, true, lost.Link)
}

func TestGCMakesAWrongIndexAnew(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 12)
	err := s.update(t.Context(), func(tx *bolt.Tx) error {
		b := sub(tx, indexBlocks)
		k, _ := b.Cursor().First()
		return b.Delete(k)
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, v, "index")
	if r := collect(t, s, GCOptions{}); !r.Reindexed || r.Removed != 0 {
		t.Errorf("gc: %+v", r)
	}
}

func TestGCShrinksTheFileWhenARunIsGone(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "keep", 2)
	for i := range 60 {
		commitBlocks(t, s, Raw([]byte(fmt.Sprint(i, randomText(20<<10)))))
	}
	r := collect(t, s, GCOptions{})
	if r.Removed != 60 || !r.Compacted || r.After >= r.Before/2 {
		t.Errorf("gc: %+v", r)
	}
	n := 0
	for _, err := range s.After(t.Context(), "keep", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d events after compaction, want 8", n)
	}
	sampleRun(t, s, "new", 2) // the store is written to as before
	collect(t, s, GCOptions{})
}

func TestGCBesideLiveRunsLosesNothing(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 6 {
				sampleRun(t, s, protocol.RunID(fmt.Sprintf("run-%d-%d", w, i)), 2)
				if err := s.Commit(ctx, Batch{Blocks: []Block{Raw(fmt.Append(nil, "garbage ", w, i))}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for working := true; working; {
		select {
		case <-done:
			working = false
		default:
		}
		if _, err := GC(ctx, s, GCOptions{Grace: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	r := collect(t, s, GCOptions{})
	if r.Removed != 12 {
		t.Errorf("removed %d blocks, want 12", r.Removed)
	}
}
