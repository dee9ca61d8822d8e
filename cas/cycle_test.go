package cas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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
	refused := func(what string, spoil func(data []byte)) {
		spoiled := bytes.Clone(whole)
		spoil(spoiled)
		writeOver(t, file, spoiled)
		if s, err := Open(t.Context(), dir, Options{ReadOnly: true}); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
			if err == nil {
				s.Close()
			}
		}
	}
	for _, element := range []int{0, 1} {
		refused(fmt.Sprintf("child %d of a branch is the branch itself", element), func(data []byte) {
			binary.LittleEndian.PutUint64(data[int(blocks.root)*int(p.page)+element*pageElement+child:], blocks.root)
		})
	}
	meta, ok := p.sub(bucketMeta)
	if !ok || meta.inline == nil {
		t.Fatal("meta is no bucket within a page")
	}
	refused("a bucket within a page that says it is a branch", func(data []byte) { data[meta.at+8] = pageBranch })
	writeOver(t, file, whole)
	if err := checkCycles(file); err != nil {
		t.Errorf("a sound store: %v", err)
	}
}
