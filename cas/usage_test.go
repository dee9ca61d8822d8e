package cas_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"wf/cas"
	"wf/protocol"
)

// A commit is observed once, with its transaction; one that is refused has its error, and no transaction.
func TestCommitsAreObserved(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	var mu sync.Mutex
	seen := map[cas.Op]int{}
	var failed error
	s.Observe(func(what cas.Op, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if seen[what]++; took <= 0 {
			t.Errorf("%s took %v", what, took)
		}
		failed = errors.Join(failed, err)
	})
	block := cas.Raw([]byte("a"))
	if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{block}, Moves: []cas.Move{{Name: "x", New: block.Link}}}); err != nil {
		t.Fatal(err)
	}
	if seen[cas.OpBatch] != 1 || seen[cas.OpCommit] != 1 || failed != nil {
		t.Errorf("%v %v", seen, failed)
	}
	err := s.Commit(t.Context(), cas.Batch{Moves: []cas.Move{{Name: "x", New: block.Link}}}) // it is no longer at none
	if !errors.Is(err, protocol.ErrHeadMoved) || !errors.Is(failed, protocol.ErrHeadMoved) || seen[cas.OpBatch] != 2 {
		t.Errorf("%v %v %v", err, failed, seen)
	}
	s.Observe(nil)
	if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("b"))}}); err != nil || seen[cas.OpBatch] != 2 {
		t.Errorf("%v %v", err, seen)
	}
}

// Blob files that come and go are measured as Store.Size measures them.
func TestAStoreIsMeasuredByWhatChanged(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	u := cas.Usage{Store: s}
	first, err := u.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Blobs != 0 || first.Database == 0 || first.Free == 0 {
		t.Errorf("an empty store: %+v", first)
	}
	for i := range 6 { // random bytes: they are not compressed
		if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw(noise(i, 100<<10))}}); err != nil {
			t.Fatal(err)
		}
		got, err := u.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Blobs != want.Blobs || got.Database != want.File || want.Blobs == 0 {
			t.Fatalf("after %d blobs: %+v, want %+v", i+1, got, want)
		}
	}
}

// noise is bytes that cannot be compressed.
func noise(seed, n int) []byte {
	out := make([]byte, n)
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x)
	}
	return out
}
