package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"wf/protocol"
)

// wipe writes zeros over the free pages of store.db, where bbolt leaves what they held: what runs said that were deleted, and states
// that were derived of them.
func (c *collector) wipe(ctx context.Context) error {
	for from := uint64(0); from != math.MaxUint64; {
		if err := c.s.opts.before(OpWipe); err != nil {
			return err
		}
		err := c.s.alone(ctx, func(path string) (err error) {
			from, err = wipeFrom(path, from)
			return classify(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wipePages are written at once.
const wipePages = 256

// wipeFrom wipes the free pages from one on, for as long as a collection may hold the store. next is the first one that is left,
// math.MaxUint64 where none is: then all are on disk. Free pages are those of neither the newest transaction nor a later one; no
// reader is in an older one, since the store is held.
func wipeFrom(path string, from uint64) (next uint64, err error) {
	f, err := openBolt(path, os.O_RDWR, 0)
	if err != nil {
		return from, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return from, err
	}
	p, err := openPages(f, info.Size())
	if err != nil {
		return from, fmt.Errorf("%w: %w", protocol.ErrCorrupt, err)
	}
	buf, zeros := make([]byte, wipePages*p.page), make([]byte, wipePages*p.page)
	begun, free := time.Now(), p.freeList()
	at, _ := slices.BinarySearch(free, from)
	for free = free[at:]; len(free) > 0; {
		if next = free[0]; next > from && time.Since(begun) > sliceTime {
			return next, nil
		}
		n := 1
		for n < min(len(free), wipePages) && free[n] == next+uint64(n) {
			n++
		}
		b, place := buf[:int64(n)*p.page], int64(next)*p.page
		if _, err := f.ReadAt(b, place); err != nil {
			return next, err
		}
		if !bytes.Equal(b, zeros[:len(b)]) {
			if _, err := f.WriteAt(zeros[:len(b)], place); err != nil {
				return next, err
			}
		}
		free = free[n:]
	}
	return math.MaxUint64, f.Sync()
}

// freeList are the free pages in order; none of a list that is damaged, which could name pages in use.
func (p *pageFile) freeList() (out []uint64) {
	list, err := p.image(p.free, pageFree)
	if err != nil {
		return nil
	}
	n, ids, last := freeCount(list), list[pageHead:], uint64(1)
	if binary.LittleEndian.Uint16(list[10:]) == math.MaxUint16 {
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return nil
	}
	for i := range n {
		id := binary.LittleEndian.Uint64(ids[8*i:])
		if id <= last || id >= uint64(p.size/p.page) {
			return nil
		}
		last = id
		out = append(out, id)
	}
	return out
}
