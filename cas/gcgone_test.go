package cas

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// crowd has the next commits of a store end as told, the later ones well. A collection takes syscall.ENOSPC for a disk that is full.
func crowd(s *Store, ends ...error) {
	s.opts.Before = func(op Op) error {
		if op != OpCommit || len(ends) == 0 {
			return nil
		}
		err := ends[0]
		ends = ends[1:]
		return err
	}
}

// emptiedStore is a store in which a collection on a full disk was cut off behind the emptying of a large block.
func emptiedStore(t *testing.T, o Options) (*Store, Block) {
	t.Helper()
	s := must(Open(t.Context(), t.TempDir(), o))
	t.Cleanup(func() { _ = s.Close() })
	large, cut := Raw([]byte(randomText(300<<10))), errors.New("cut off")
	sampleRun(t, s, "one", 5)
	commitBlocks(t, s, large)
	crowd(s, syscall.ENOSPC, cut)
	if _, err := GC(t.Context(), s, GCOptions{}); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	s.opts.Before = nil
	wantGone(t, s, 1)
	return s, large
}

func wantGone(t *testing.T, s *Store, n int) {
	t.Helper()
	if gone := must(filepath.Glob(filepath.Join(s.Dir(), dirBlobs, "*", emptiedBegin+"*"))); len(gone) != n {
		t.Errorf("emptied are %v, want %d", gone, n)
	}
}

func wantSound(t *testing.T, s *Store) {
	t.Helper()
	if r := must(Verify(t.Context(), s, VerifyOptions{All: true})); !r.OK {
		t.Error(r.Findings)
	}
}

// A collection that keeps the emptied block, since it is young, keeps what tells that it was emptied.
func TestWhatTellsOfAnEmptiedBlockStaysWithItsPack(t *testing.T) {
	s, _ := emptiedStore(t, Options{})
	if r := collect(t, s, GCOptions{Grace: time.Hour}); r.Young != 1 || r.Removed != 0 {
		t.Errorf("%+v", r)
	}
	wantSound(t, s)
	if r := collect(t, s, GCOptions{}); r.Removed != 1 || r.Blobs != 1 {
		t.Errorf("%+v", r)
	}
	wantGone(t, s, 0)
	wantSound(t, s)
}

// Of an emptied block that was stored again the file stays, and what told of it goes.
func TestAnEmptiedBlockIsStoredAgain(t *testing.T) {
	s, large := emptiedStore(t, Options{})
	commitBlocks(t, s, large)
	wantHas(t, s, true, large.Link)
	collect(t, s, GCOptions{Grace: time.Hour})
	wantHas(t, s, true, large.Link)
	wantGone(t, s, 0)
	wantSound(t, s)
}

// A backup has no need of a block that nothing reaches.
func TestAStoreWithAnEmptiedBlockIsBackedUp(t *testing.T) {
	s, _ := emptiedStore(t, Options{})
	to := filepath.Join(t.TempDir(), "backup")
	if _, err := Backup(t.Context(), s, to, BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	back := filepath.Join(t.TempDir(), "back")
	must(Restore(t.Context(), to, back, s.now(), Options{}))
	restored := must(Open(t.Context(), back, Options{}))
	defer restored.Close()
	wantSound(t, restored)
}

// What another process names while a collection finds that the disk is full is not emptied.
func TestACollectionOnAFullDiskEmptiesNothingThatIsNamedMeanwhile(t *testing.T) {
	s := wasteful(t, Options{Wait: time.Minute})
	large := Raw([]byte(randomText(300 << 10)))
	commitBlocks(t, s, large)
	for i := range 40 { // the newest pack is another one
		commitBlocks(t, s, Raw([]byte(fmt.Sprint(i, randomText(1500)))))
	}
	other := must(Open(t.Context(), s.Dir(), Options{Wait: time.Minute}))
	defer other.Close()
	s.opts.Before = func(op Op) error {
		if op != OpRewrite { // right after the block was taken for dead
			return nil
		}
		again := must(Encode(map[string]any{"it": large.Link}))
		if err := other.Commit(t.Context(), Batch{Blocks: []Block{large, again}, Moves: []Move{{Name: "memory/m", New: again.Link}}}); err != nil {
			t.Error(err)
		}
		crowd(s, syscall.ENOSPC)
		return syscall.ENOSPC
	}
	if r := collect(t, s, GCOptions{}); r.Compacted {
		t.Errorf("%+v", r)
	}
	wantHas(t, s, true, large.Link)
	wantSound(t, s)
}

// Nor a block that one pack has from long ago, and another one anew.
func TestACollectionOnAFullDiskEmptiesNothingThatAnotherPackHas(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, large := emptiedStore(t, Options{Now: func() int64 { return now.UnixMicro() }})
	day := GCOptions{Grace: 24 * time.Hour}
	collect(t, s, day) // from here on its age is known
	now = now.Add(25 * time.Hour)
	commitBlocks(t, s, large)
	crowd(s, syscall.ENOSPC)
	if r := collect(t, s, day); r.Removed != 1 || r.Young != 1 {
		t.Errorf("%+v", r)
	}
	wantHas(t, s, true, large.Link)
	wantSound(t, s)
}
