package cas

import (
	"bytes"
	"fmt"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// together commits batches in one transaction, as goroutines do that commit at the same time.
func together(t *testing.T, s *Store, batches ...[]Block) {
	t.Helper()
	s.queue.crowded = true
	var group []*request
	for _, blocks := range batches {
		packs, err := s.prepare(blocks)
		if err != nil {
			t.Fatal(err)
		}
		group = append(group, &request{packs: packs, done: make(chan error, 1)})
	}
	h, err := s.gate.enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	s.writeGroup(h, group)
	for _, r := range group {
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
	}
}

// packsOf is how many packs a store has, and how many segments they have in all.
func packsOf(t *testing.T, s *Store) (packs, segs int) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bolt.Tx) error {
		return tx.Bucket(bucketBlocks).ForEach(func(_, v []byte) error {
			got, err := segments(v)
			packs, segs = packs+1, segs+len(got)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return packs, segs
}

// stepBlocks are a payload, and a record that links to it.
func stepBlocks(t *testing.T, i int) []Block {
	t.Helper()
	out := Raw(fmt.Appendf(nil, `{"n":%d}`, i/2))
	rec, err := Encode(protocol.StepRecord{Kind: protocol.KindStep, V: protocol.RecordVersion, Start: Raw([]byte("start")).Link,
		Parents: []protocol.Link{out.Link}, Role: "one", Visit: i, Data: out.Link, Status: protocol.StepOK})
	if err != nil {
		t.Fatal(err)
	}
	return []Block{out, rec}
}

func TestBatchesOfOneTransactionSharePacks(t *testing.T) {
	s := openSample(t)
	const n = 60
	var batches [][]Block
	var links []protocol.Link
	different := map[protocol.Link]bool{}
	for i := range n {
		blocks := stepBlocks(t, i)
		batches = append(batches, blocks)
		for _, b := range blocks {
			links = append(links, b.Link)
			different[b.Link] = true
		}
	}
	together(t, s, batches...)
	wantHas(t, s, true, links...)
	packs, segs := packsOf(t, s)
	if segs > n/5 {
		t.Errorf("%d batches make %d packs of %d segments; want several batches in each", n, packs, segs)
	}
	noted := func(when string) {
		if late, keys := lateOf(t, s); late+keys != len(different) {
			t.Errorf("%s %d places are noted of %d different blocks", when, late+keys, len(different))
		}
	}
	noted("at first")
	together(t, s, batches[0], batches[1])
	noted("when they are committed again")
	if v := verifyClosed(t, s.Dir(), VerifyOptions{}); !v.OK {
		t.Errorf("verify: %v", v.Findings)
	}
}

func TestABatchOfManyStepsIsASegmentOfPayloadsAndOneOfRecords(t *testing.T) {
	s := openSample(t)
	var blocks []Block
	for i := range 40 {
		blocks = append(blocks, stepBlocks(t, i)...)
	}
	commitBlocks(t, s, blocks...)
	if packs, segs := packsOf(t, s); packs != 1 || segs != 2 {
		t.Errorf("%d packs of %d segments", packs, segs)
	}
}

// Around the length at which a segment is full, and at the most that a small block may have, each
// block of a transaction of several batches is found, and once.
func TestSegmentsOfSeveralBatchesAtEveryLength(t *testing.T) {
	for _, length := range []int{1, gatherMax / 2, gatherMax - 1, gatherMax, gatherMax + 1, smallBlock - 1, smallBlock, smallBlock + 1} {
		s := openSample(t)
		var batches [][]Block
		var links []protocol.Link
		for i := range byte(9) {
			b := Raw(bytes.Repeat([]byte{'a' + i}, length))
			short := Raw([]byte{'0' + i})
			batches = append(batches, []Block{b, short}, []Block{short})
			links = append(links, b.Link, short.Link)
		}
		together(t, s, batches...)
		wantHas(t, s, true, links...)
		if late, keys := lateOf(t, s); late+keys != len(links) {
			t.Errorf("%d bytes: %d places are noted of %d blocks", length, late+keys, len(links))
		}
		if v := verifyClosed(t, s.Dir(), VerifyOptions{}); !v.OK {
			t.Errorf("%d bytes: verify: %v", length, v.Findings)
		}
	}
}
