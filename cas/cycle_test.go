package cas

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

// A branch page whose child is itself, or the page above it, sends a reader round in circles.
func TestABranchThatLeadsBackIsFoundBeforeAnyoneWalks(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if err := s.Commit(t.Context(), Batch{Blocks: []Block{Raw([]byte(randomText(5000 + i)))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fileDB)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := openPages(f, int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	blocks, ok := p.sub(bucketBlocks)
	if !ok || !p.branch(blocks.root) {
		t.Fatal("the sample is too small to have a branch page")
	}
	const child = pageHead + 8 // of the first element
	for _, element := range []int{0, 1} {
		at := int(blocks.root)*int(p.page) + element*pageElement + child
		spoiled := append([]byte(nil), whole...)
		binary.LittleEndian.PutUint64(spoiled[at:], blocks.root)
		writeOver(t, file, spoiled)
		if s, err := Open(t.Context(), dir, Options{ReadOnly: true}); err == nil {
			_, err = s.Head(context.Background(), "run/none")
			if !errors.Is(err, protocol.ErrCorrupt) {
				t.Errorf("child %d of a branch is the branch itself: %v", element, err)
			}
			s.Close()
		} else if !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("child %d of a branch is the branch itself: %v", element, err)
		}
	}
	writeOver(t, file, whole)
	if err := checkCycles(file); err != nil {
		t.Errorf("a sound store: %v", err)
	}
}
