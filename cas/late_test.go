package cas

import (
	"fmt"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// manyBlocks commits n blocks one by one.
func manyBlocks(t *testing.T, s *Store, n int) []protocol.Link {
	t.Helper()
	var out []protocol.Link
	for i := range n {
		b := Raw(fmt.Append(nil, "block ", i))
		commitBlocks(t, s, b)
		out = append(out, b.Link)
	}
	return out
}

// lateOf is how many entries are late, and how many keys index/blocks has.
func lateOf(t *testing.T, s *Store) (late, keys int) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bolt.Tx) error {
		late = len(tx.Bucket(bucketMeta).Get(keyLate)) / lateSize
		return sub(tx, indexBlocks).ForEach(func(_, _ []byte) error { keys++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return late, keys
}

func TestBlocksAreFoundBeforeAndAfterTheyAreIndexed(t *testing.T) {
	s := openSample(t)
	const n = 3 * lateMax / lateSize
	links := manyBlocks(t, s, n)
	late, keys := lateOf(t, s)
	if late == 0 || late*lateSize > lateMax || late+keys != n {
		t.Errorf("%d of %d entries are late, %d indexed", late, n, keys)
	}
	other, err := Open(t.Context(), s.Dir(), Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, from := range []*Store{s, other} {
		wantHas(t, from, true, links...)
		for _, l := range links[n-30:] {
			if found, err := from.Find(t.Context(), l.String()[7:19]); err != nil || !slices.Equal(found, []protocol.Link{l}) {
				t.Errorf("found %v, %v; want %s", found, err, l)
			}
		}
	}
	commitBlocks(t, s, Raw([]byte("block 1")))
	if again, _ := lateOf(t, s); again != late {
		t.Errorf("a block that is stored already made the late entries %d, they were %d", again, late)
	}
}

func TestALargeCommitLeavesMoreToBeIndexedAndSmallOnesBringItDown(t *testing.T) {
	s := openSample(t)
	var blocks []Block
	for i := range 2000 {
		blocks = append(blocks, Raw(fmt.Append(nil, "one of many ", i)))
	}
	commitBlocks(t, s, blocks...)
	before, keys := lateOf(t, s)
	if before*lateSize <= lateMax || keys != 0 {
		t.Errorf("%d entries are late and %d indexed behind a commit of %d blocks", before, keys, len(blocks))
	}
	links := manyBlocks(t, s, 30)
	for _, b := range blocks {
		links = append(links, b.Link)
	}
	late, keys := lateOf(t, s)
	if late*lateSize > lateMax || late+keys != len(links) {
		t.Errorf("%d of %d entries are late behind 30 small commits, %d indexed", late, len(links), keys)
	}
	wantHas(t, s, true, links...)
	wantHas(t, s, false, Raw([]byte("none of them")).Link)
	if v := verifyClosed(t, s.Dir(), VerifyOptions{}); !v.OK {
		t.Errorf("verify: %v", v.Findings)
	}
}

// Commits that add as many blocks as leave all of them, about that many, and far more: each block is
// found, and no commit leaves more than the most.
func TestCommitsAroundWhatMayBeLate(t *testing.T) {
	counts := []int{lateMax/lateSize - 1, lateMax / lateSize, lateMax/lateSize + 1, lateCrowd/lateSize - 1, lateCrowd / lateSize, lateCrowd/lateSize + 1, 3 * lateCrowd / lateSize}
	if testing.Short() {
		counts = counts[:3] // with the race detector the others take most of the time of this package
	}
	for _, n := range counts {
		s := openSample(t)
		var blocks []Block
		var links []protocol.Link
		for i := range n {
			blocks = append(blocks, Raw(fmt.Append(nil, "one of ", n, ": ", i)))
			links = append(links, blocks[i].Link)
		}
		for part := range slices.Chunk(blocks, max(1, n/2)) {
			commitBlocks(t, s, part...)
			if late, _ := lateOf(t, s); late*lateSize > lateCrowd {
				t.Errorf("%d blocks: %d are late, at most %d may be", n, late, lateCrowd/lateSize)
			}
		}
		if late, keys := lateOf(t, s); late+keys != n {
			t.Errorf("%d blocks: %d are late, %d indexed", n, late, keys)
		}
		wantHas(t, s, true, links...)
	}
}

func TestGCIndexesWhatIsLateAndRemovesIt(t *testing.T) {
	s := openSample(t)
	links := manyBlocks(t, s, 50)
	if r := collect(t, s, GCOptions{}); r.Removed != 50 || r.Reindexed {
		t.Errorf("gc: %+v", r)
	}
	wantHas(t, s, false, links...)
	if late, keys := lateOf(t, s); late+keys != 0 {
		t.Errorf("%d late entries and %d keys are left", late, keys)
	}
}

func TestW05LostOrDamagedLateEntriesAreMadeAnew(t *testing.T) {
	for what, damage := range map[string]func(meta *bolt.Bucket) error{
		"lost":    func(meta *bolt.Bucket) error { return meta.Delete(keyLate) },
		"emptied": func(meta *bolt.Bucket) error { return meta.Put(keyLate, []byte{}) },
		"cut":     func(meta *bolt.Bucket) error { return meta.Put(keyLate, slices.Clone(meta.Get(keyLate)[:lateSize+3])) },
	} {
		t.Run(what, func(t *testing.T) {
			s := openSample(t)
			j := sampleRun(t, s, "one", 2)
			head, _ := j.Head()
			h, err := s.gate.enter(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.write(h, func(tx *bolt.Tx) error { return damage(tx.Bucket(bucketMeta)) }); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			v := verifyClosed(t, s.Dir(), VerifyOptions{})
			if v.OK != (what == "lost") {
				t.Errorf("verify says ok = %v: %v", v.OK, v.Findings)
			}
			again, err := Open(t.Context(), s.Dir(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if r := collect(t, again, GCOptions{}); r.Removed != 0 {
				t.Errorf("gc: %+v", r)
			}
			wantHas(t, again, true, head)
		})
	}
}
