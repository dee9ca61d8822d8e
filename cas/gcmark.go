package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// sliceTime is how long a collection or a backup holds the store at a time; sliceBytes is what it copies out of it
// meanwhile. What was copied is read and hashed while others work.
const (
	sliceTime  = 10 * time.Millisecond
	sliceBytes = 2 << 20
)

// entry is an entry of a bucket that was copied out of a transaction.
type entry struct{ key, value []byte }

// eachPart gives f the entries of a bucket with keys above from, and below to unless that is nil, in parts. The store
// is held while a part is copied, and not while f works on it.
func (s *Store) eachPart(ctx context.Context, path [][]byte, from, to []byte, f func([]entry) error) error {
	for {
		var part []entry
		done := false
		err := s.view(ctx, func(tx *bolt.Tx) error {
			part, done = nil, false
			b := tx.Bucket(path[0])
			for _, name := range path[1:] {
				if b != nil {
					b = b.Bucket(name)
				}
			}
			if b == nil {
				done = true
				return nil
			}
			c := b.Cursor()
			k, v := c.First()
			if from != nil {
				if k, v = c.Seek(from); bytes.Equal(k, from) {
					k, v = c.Next()
				}
			}
			size := 0
			for begun := time.Now(); size < sliceBytes && (len(part)%64 != 0 || time.Since(begun) < sliceTime || len(part) == 0); k, v = c.Next() {
				if k == nil || to != nil && bytes.Compare(k, to) >= 0 {
					done = true
					return nil
				}
				part = append(part, entry{bytes.Clone(k), bytes.Clone(v)})
				size += len(k) + len(v)
			}
			return nil
		})
		if err == nil && len(part) > 0 {
			from = part[len(part)-1].key
			err = f(part)
		}
		if err != nil || done {
			return err
		}
	}
}

// reads are the packs of a slice, on their way into the graph.
type readPack struct {
	entry
	blocks []seenBlock
	err    error
}

// readPacks unpacks and hashes packs on all processors.
func (s *Store) readPacks(part []entry) []readPack {
	out := make([]readPack, len(part))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(part)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(part); i = int(next.Add(1)) - 1 {
				p := &out[i]
				p.entry = part[i]
				us, err := s.unpack(p.value)
				if err == nil {
					err = misplaced(p.value, len(us), us[len(us)-1].digest)
				}
				p.err = err
				for j := range us {
					p.blocks = append(p.blocks, lookAt(&us[j]))
				}
			}
		})
	}
	workers.Wait()
	return out
}

// misplaced is an error for a blob file with other blocks than its pack names: so many, and the last has this digest.
func misplaced(pack []byte, blocks int, digest [32]byte) error {
	if pack[0] == packBlob && (blocks != 1 || !bytes.Equal(digest[:], pack[1:])) {
		return fmt.Errorf("blob file %x holds another block: %w", pack[1:], protocol.ErrCorrupt)
	}
	return nil
}

// mark reads the whole store in slices and finds what is reached.
func (c *collector) mark(ctx context.Context, r *GCReport) error {
	c.marks = newMarker()
	check, err := c.s.beginIndexSum(ctx)
	if err != nil {
		return err
	}
	if err := c.readAll(ctx, check.packed); err != nil {
		return err
	}
	if c.reindex, err = check.wrong(ctx, c); err != nil {
		return err
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	return c.count(ctx, r)
}

// readAll takes all blocks into the graph, and tells of each with its place.
func (c *collector) readAll(ctx context.Context, tell func(sum, pack []byte, at int)) error {
	err := c.s.eachPart(ctx, [][]byte{bucketBlocks}, nil, nil, func(part []entry) error {
		for _, p := range c.s.readPacks(part) {
			if errors.Is(p.err, errEmptied) {
				sum := [32]byte(p.value[1:])
				tell(sum[:], p.key, 0)
				c.packs = append(c.packs, seenPack{key: string(p.key), blob: true, sum: sum, stored: len(p.value), blocks: []uint32{c.marks.id(sum)}})
				continue
			}
			if p.err != nil {
				return fmt.Errorf("the store is damaged (pack %s: %s); wf verify tells more: %w", packNumber(p.key), oneLine(p.err), protocol.ErrCorrupt)
			}
			seen := seenPack{key: string(p.key), blob: p.value[0] == packBlob, stored: len(p.value), blocks: make([]uint32, len(p.blocks))}
			for i := range p.blocks {
				c.marks.add(&p.blocks[i])
				seen.blocks[i] = c.marks.id(p.blocks[i].sum)
				tell(p.blocks[i].sum[:], p.key, i)
			}
			if seen.blob {
				seen.sum = p.blocks[0].sum
			}
			c.packs = append(c.packs, seen)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(c.packs); n > 0 {
		c.now = extent{c.packs[n-1].key, len(c.packs[n-1].blocks)}
	}
	return nil
}

// count judges every block.
func (c *collector) count(ctx context.Context, r *GCReport) (err error) {
	if c.old, err = c.outlived(ctx); err != nil {
		return err
	}
	for i := range c.packs {
		p := &c.packs[i]
		for at, id := range p.blocks {
			b := &c.marks.blocks[id]
			switch c.judge(p.key, at, id) {
			case blockLive:
				r.Kept++
			case blockYoung:
				r.Young++
			default:
				p.dead++
				r.Removed++
				r.Bytes += int64(b.size)
			}
		}
		if p.dead > 0 {
			c.waste += int64(p.stored) * int64(p.dead) / int64(len(p.blocks))
		}
		if p.blob {
			c.blobs[p.sum] = p.dead == 0
		}
	}
	return nil
}

// What becomes of a block.
const (
	blockLive = iota
	blockYoung
	blockDead
)

// judge says what becomes of a block at its place. Neither the grace period nor the reflog keeps what only runs
// that were deleted reached.
func (c *collector) judge(pack string, at int, id uint32) int {
	switch state := c.marks.blocks[id].state; {
	case state&gcLive != 0:
		return blockLive
	case state&gcBuried == 0 && !c.old.holds(pack, at):
		return blockYoung
	}
	return blockDead
}

// outlived is the extent that has outlived the grace period.
func (c *collector) outlived(ctx context.Context) (old extent, err error) {
	if c.o.Grace <= 0 {
		return c.now, nil
	}
	err = c.s.view(ctx, func(tx *bolt.Tx) error {
		old, c.extents = extent{}, map[string]bool{}
		latest := int64(0) // a time before that, or one to come, was told by a clock that was wrong
		for v := tx.Bucket(bucketMeta).Get(keyGC); len(v) >= gcMarkSize; v = v[gcMarkSize:] {
			at := extent{string(packKey(binary.BigEndian.Uint64(v[8:]))), int(binary.BigEndian.Uint32(v[20:]))}
			c.extents[at.pack] = true
			noted := int64(binary.BigEndian.Uint64(v))
			if noted < latest || noted > c.clock {
				continue
			}
			if latest = noted; noted <= c.clock-c.o.Grace.Microseconds() {
				old = at
			}
		}
		return nil
	})
	return old, err
}
