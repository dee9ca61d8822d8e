package cas

import (
	"fmt"
	"slices"
	"testing"

	"wf/protocol"
)

// Any part of a CID that is long enough finds its block, whatever its codec and length.
func TestFindByAPartOfTheCID(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var blocks []Block
	for i := range 300 {
		blocks = append(blocks, Raw(fmt.Appendf(nil, "block %d", i)))
		b, err := Put("dag-json", fmt.Appendf(nil, `{"block":%d}`, i))
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
	if err := s.Commit(t.Context(), Batch{Blocks: blocks}); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		for _, n := range []int{FindMin, 8, 13, 14, 20, 52} {
			part := b.Link.String()[7 : 7+n]
			found, err := s.Find(t.Context(), part)
			if err != nil || !slices.Contains(found, b.Link) {
				t.Fatalf("%s by %s: have %v, %v", b.Link, part, found, err)
			}
		}
	}
	for _, part := range []string{"", "aaaaa", "zzzzzz", "AAAAAA", "aaaaa1", "aaaaaaaa"} {
		if found, err := s.Find(t.Context(), part); err != nil || !slices.Equal(found, []protocol.Link(nil)) {
			t.Errorf("%q: have %v, %v; want nothing", part, found, err)
		}
	}
}
