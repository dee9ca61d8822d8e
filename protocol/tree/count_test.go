package tree

import (
	"errors"
	"fmt"
	"testing"

	"wf/protocol"
)

// nested is a tree whose directories name the next one some times, so many deep.
func nested(t *testing.T, wide, deep int) (Read, protocol.Link) {
	t.Helper()
	have := map[protocol.Link][]byte{}
	put := func(entries []Entry) protocol.Link {
		blocks, err := Encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			have[b.Link] = b.Data
		}
		return blocks[len(blocks)-1].Link
	}
	at := put([]Entry{{Name: "f", Mode: File, Link: Raw([]byte("x")).Link, Size: 1}})
	for range deep - 1 {
		var entries []Entry
		for i := range wide {
			entries = append(entries, Entry{Name: fmt.Sprintf("%05d", i), Mode: Dir, Link: at, Size: 1})
		}
		at = put(entries)
	}
	return func(l protocol.Link) ([]byte, error) {
		if b, ok := have[l]; ok {
			return b, nil
		}
		return nil, protocol.ErrNotFound
	}, at
}

// A tree that a few blocks make too large ends before much of it is yielded, and one that has just as many entries as a
// tree may have is walked to its end.
func TestATreeIsCountedBeforeItIsYielded(t *testing.T) {
	for _, x := range []struct {
		wide, deep int
		ok         bool
	}{
		{20, 13, false}, {2, 41, false}, {2, 20, false}, {1, DepthMax, true}, {1, DepthMax + 1, false}, {1, 5000, false},
		{1000, 3, false}, {707, 3, false}, {706, 3, true}, {10, 6, true}, // 707: 1,000,405 entries; 706: 997,578
		{2, 19, true},
	} {
		t.Run(fmt.Sprintf("%d × %d", x.wide, x.deep), func(t *testing.T) {
			read, root := nested(t, x.wide, x.deep)
			blocks := 0
			counted := func(l protocol.Link) ([]byte, error) { blocks++; return read(l) }
			yielded := 0
			var last error
			for _, err := range Walk(counted, root) {
				if last = err; err == nil {
					yielded++
				}
			}
			if x.ok != (last == nil) || !x.ok && (!errors.Is(last, protocol.ErrInvalidBlock) || yielded > 1000 || blocks > 10_000) {
				t.Errorf("walk: %d entries, %d blocks read, %v", yielded, blocks, last)
			}
			for name, pair := range map[string][2]protocol.Link{"made": {{}, root}, "gone": {root, {}}, "same": {root, root}} {
				yielded, last = 0, nil
				for _, err := range Diff(read, pair[0], pair[1]) {
					if last = err; err == nil {
						yielded++
					}
				}
				if name == "same" {
					if last != nil || yielded > 0 {
						t.Errorf("%s: %d, %v", name, yielded, last)
					}
					continue
				}
				if x.ok != (last == nil) || !x.ok && yielded > 2000 {
					t.Errorf("diff, %s: %d changes, %v", name, yielded, last)
				}
			}
		})
	}
}
