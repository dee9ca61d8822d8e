package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"wf/protocol"
)

// A reader gives what Block gives, whether blocks lie beside others or in files of their own, to several at once, and holds no more
// than it may.
func TestAReaderGivesWhatBlockGives(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var blocks []Block
	for i := range 4000 {
		blocks = append(blocks, Raw(bytes.Repeat(fmt.Appendf(nil, "block %d ", i), 100)))
	}
	for _, size := range []int{0, 1, smallBlock - 1, smallBlock, smallBlock + 1, inlineMax + 1, 300 << 10} {
		blocks = append(blocks, Raw(bytes.Repeat([]byte{byte(size)}, size)))
	}
	for at := 0; at < len(blocks); at += 500 {
		if err := s.Commit(t.Context(), Batch{Blocks: blocks[at:min(at+500, len(blocks))]}); err != nil {
			t.Fatal(err)
		}
	}
	x := &reading{s: s, ctx: t.Context()}
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for i := range blocks {
				b := blocks[(i*(2*w+1))%len(blocks)]
				data, err := x.block(b.Link)
				if err != nil || !bytes.Equal(data, b.Data) {
					t.Errorf("%s: %d bytes, %v", b.Link, len(data), err)
				}
			}
		})
	}
	all.Wait()
	held := 0
	for _, m := range []map[[32]byte][]byte{x.now, x.older} {
		for _, b := range m {
			held += len(b)
		}
	}
	if most := 2 * (readerMax + packMax); held > most || held == 0 {
		t.Errorf("%d bytes are held, at most %d may", held, most)
	}
	if _, err := x.block(Raw([]byte("not there")).Link); !errors.Is(err, protocol.ErrNotFound) {
		t.Error(err)
	}
	if _, err := x.block(protocol.Link{}); !errors.Is(err, protocol.ErrNotFound) {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	read := s.Reader(ended)
	if _, err := read(blocks[0].Link); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := read(blocks[0].Link); !errors.Is(err, context.Canceled) {
		t.Errorf("when its context has ended: %v", err)
	}
}
