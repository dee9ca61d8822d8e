package cas

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/protocol"
)

// wasteful is a store with two runs to keep, a fork, and much that is dead.
func wasteful(t testing.TB, o Options) *Store {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	sampleRun(t, s, "one", 40)
	sampleRun(t, s, "two", 5)
	for i := range 5 {
		run := protocol.RunID(fmt.Sprint("gone", i))
		sampleRunOf(t, s, run, 20, func(v int) string { return fmt.Sprint(run, v, randomText(3000)) })
	}
	for i := range 5 {
		bury(t, s, protocol.RunID(fmt.Sprint("gone", i)))
	}
	if err := s.Commit(t.Context(), Batch{Derived: []Derived{{Key: StateKey("one"), Head: must(s.Head(t.Context(), "run/one")).Link, Data: []byte("state")}}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// everything is what a store says of its runs.
func everything(t testing.TB, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, h := range must(s.Heads(t.Context(), "")) {
		out[h.Name] = fmt.Sprint(h.Link, h.Seq, h.TS)
		if run, ok := strings.CutPrefix(h.Name, "run/"); ok {
			n := 0
			for _, err := range s.After(t.Context(), protocol.RunID(run), 0) {
				if err != nil {
					t.Fatalf("run %s: %v", run, err)
				}
				n++
			}
			out[run] = fmt.Sprint(n)
			d, sealed, err := s.Derived(t.Context(), StateKey(protocol.RunID(run)))
			out["state of "+run] = fmt.Sprint(string(d.Data), sealed, err)
		}
	}
	return out
}

// Cut off by a kill before any of its operations, a collection leaves a store that holds the same and is sound; and
// so does one in which the operation fails. The next one is not hindered.
func TestACollectionThatIsCutOffAnywhereLosesNothing(t *testing.T) {
	for n := 1; ; n += cutOff() {
		count, copied := 0, ""
		broken := errors.New("cut off")
		s := wasteful(t, Options{})
		want := everything(t, s)
		s.opts.Before = func(op Op) error {
			if op == OpOpen {
				return nil
			}
			if count++; count == n {
				copied = filepath.Join(t.TempDir(), "killed")
				if err := os.CopyFS(copied, os.DirFS(s.Dir())); err != nil {
					t.Error(err)
				}
				return broken
			}
			return nil
		}
		r, err := GC(t.Context(), s, GCOptions{Grace: time.Hour})
		if copied == "" {
			if err != nil || !r.Compacted || n < 10 {
				t.Fatalf("%d operations: %+v, %v", n-1, r, err)
			}
			return
		}
		s.opts.Before = nil
		killed := must(Open(t.Context(), copied, Options{}))
		for what, s := range map[string]*Store{"failed": s, "killed": killed} {
			if r := must(Verify(t.Context(), s, VerifyOptions{All: true})); !r.OK {
				t.Fatalf("%s at operation %d: %v", what, n, r.Findings)
			}
			if got := everything(t, s); !maps.Equal(got, want) {
				t.Fatalf("%s at operation %d: %v, want %v", what, n, got, want)
			}
			must(GC(t.Context(), s, GCOptions{Grace: time.Hour}))
			if _, err := os.Lstat(filepath.Join(s.Dir(), "store.db.compact")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s at operation %d: the new file is left: %v", what, n, err)
			}
			if got := everything(t, s); !maps.Equal(got, want) {
				t.Fatalf("%s at operation %d, collected again: %v, want %v", what, n, got, want)
			}
		}
		if err := killed.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What others write while a store is written anew is in the new file: events, runs, derived values, deletions, and
// blocks that were taken for dead.
func TestWhatIsWrittenDuringACollectionIsKept(t *testing.T) {
	s := wasteful(t, Options{Wait: time.Minute})
	dead := Raw([]byte("dead " + randomText(3000)))
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{dead}}); err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // the newest pack is another one
		if err := s.Commit(t.Context(), Batch{Blocks: []Block{Raw([]byte(fmt.Sprint(i, randomText(1500))))}}); err != nil {
			t.Fatal(err)
		}
	}
	other := must(Open(t.Context(), s.Dir(), Options{Wait: time.Minute}))
	var once sync.Once
	var heads map[string]string
	s.opts.Before = func(op Op) error {
		if op != OpSwap && op != OpRewrite {
			return nil
		}
		once.Do(func() { // right after the first part was copied, and before what is copied last
			sampleRunOf(t, other, "late", 30, func(v int) string { return fmt.Sprint("late", v) })
			j := must(other.Journal(t.Context(), "two"))
			if _, err := j.Append(t.Context(), 1, []Draft{{Data: protocol.ResumedBy{By: "x"}}}, nil); err != nil {
				t.Error(err)
			}
			again := must(Encode(map[string]any{"it": dead.Link}))
			if err := other.Commit(t.Context(), Batch{Blocks: []Block{dead, again}, Moves: []Move{{Name: "memory/m", New: again.Link}},
				Derived: []Derived{{Key: StateKey("two"), Head: again.Link, Data: []byte("new")}}}); err != nil {
				t.Error(err)
			}
			bury(t, other, "one")
			heads = everything(t, other)
		})
		return nil
	}
	if r := must(GC(t.Context(), s, GCOptions{})); !r.Compacted {
		t.Fatalf("%+v", r)
	}
	if got := everything(t, other); !maps.Equal(got, heads) {
		t.Errorf("%v, want %v", got, heads)
	}
	wantHas(t, s, true, dead.Link)
	if d, _, err := s.Derived(t.Context(), StateKey("one")); err != nil || d.Data != nil {
		t.Errorf("what was derived of the deleted run is there: %q, %v", d.Data, err)
	}
	if r := must(Verify(t.Context(), s, VerifyOptions{All: true})); !r.OK {
		t.Error(r.Findings)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// What only deleted runs reached goes at once; what others left behind stays for the grace period.
func TestTheGracePeriodIsNotForDeletedRuns(t *testing.T) {
	s := openSample(t)
	sampleRunOf(t, s, "one", 2, func(int) string { return randomText(100<<10) + "of one" })
	sampleRun(t, s, "two", 3)
	young := Raw([]byte("young"))
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{young}}); err != nil {
		t.Fatal(err)
	}
	h := must(s.Head(t.Context(), "run/one"))
	shared := must(s.Head(t.Context(), "run/two"))
	own := map[protocol.Link]bool{}
	for e, err := range s.After(t.Context(), "one", 0) {
		if err != nil {
			t.Fatal(err)
		}
		own[e.CID] = true
	}
	bury(t, s, "one")
	r := must(GC(t.Context(), s, GCOptions{Grace: time.Hour}))
	if r.Removed < int64(len(own)) || r.Young != 1 {
		t.Errorf("%+v", r)
	}
	wantHas(t, s, false, h.Link)
	wantHas(t, s, true, shared.Link, young.Link)
	files, err := filepath.Glob(filepath.Join(s.Dir(), dirBlobs, "*", "*"))
	if err != nil || r.Blobs == 0 || len(files) == 0 { // those of run two stay
		t.Errorf("%d files are removed, %d are left, %v", r.Blobs, len(files), err)
	}
	if r := must(Verify(t.Context(), s, VerifyOptions{All: true})); !r.OK {
		t.Error(r.Findings)
	}
}

// A store of which nothing is left but what is derived is written anew as any other.
func TestAStoreWithoutBlocksIsCollected(t *testing.T) {
	now := time.Now().UnixMicro()
	s := memoStore(t, &now)
	var b Batch
	for i := range 2000 {
		b.Derived = append(b.Derived, Derived{Key: fmt.Sprintf("%s%04d", tableHeads, i), Data: make([]byte, 4096)})
	}
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	r, err := GC(t.Context(), s, GCOptions{})
	if err != nil || r.After >= r.Before {
		t.Fatalf("%+v, %v: want a smaller file", r, err)
	}
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{Raw([]byte("one"))}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Block(t.Context(), Raw([]byte("one")).Link); err != nil || string(got) != "one" {
		t.Errorf("afterwards a block is %q, %v", got, err)
	}
}
