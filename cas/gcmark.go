package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
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

// block of the graph that a collection makes.
type gcBlock struct {
	links []uint32
	size  uint32
	state uint8
}

const (
	gcStored uint8 = 1 << iota // a pack has it
	gcLive                     // a head, or a late move of one, leads to it
	gcBuried                   // a run that was deleted leads to it
	gcOdd                      // its links cannot be read
)

// marker is the graph of all blocks of a store: ids are given in the order in which digests are met.
type marker struct {
	ids    map[[32]byte]uint32
	sums   [][32]byte // by id
	blocks []gcBlock
	stones map[[32]byte][]protocol.Link // tombstones: the newest event that the run had, and what kept its files
}

func newMarker() marker {
	return marker{ids: map[[32]byte]uint32{}, stones: map[[32]byte][]protocol.Link{}}
}

func (m *marker) id(sum [32]byte) uint32 {
	id, ok := m.ids[sum]
	if !ok {
		id = uint32(len(m.blocks))
		m.ids[sum] = id
		m.sums = append(m.sums, sum)
		m.blocks = append(m.blocks, gcBlock{})
	}
	return id
}

// seen is what is read of a block.
type seenBlock struct {
	sum   [32]byte
	size  int
	links []ref
	odd   bool
	stone []protocol.Link
}

// lookAt reads the links of a block.
func lookAt(u *unpacked) seenBlock {
	b := seenBlock{sum: u.digest, size: len(u.data)}
	var err error
	if b.links, err = linksIn(u.codec, u.data); err != nil {
		b.odd = true
	}
	if u.codec != cid.Raw && bytes.Contains(u.data, tombstoneMark) {
		var t protocol.Tombstone
		if Decode(u.data, &t) == nil && t.Kind == protocol.KindTombstone {
			for _, text := range []string{t.Head, t.Files} {
				if l, err := protocol.ParseLink(text); err == nil {
					b.stone = append(b.stone, l)
				}
			}
		}
	}
	return b
}

// tombstoneMark is what stands in every tombstone.
var tombstoneMark = []byte("d" + "kind" + "i" + protocol.KindTombstone) // as DAG-CBOR: text of 4 bytes, text of 9

// add takes a block into the graph.
func (m *marker) add(b *seenBlock) {
	id := m.id(b.sum)
	if m.blocks[id].state&gcStored != 0 {
		return
	}
	var links []uint32
	for _, l := range b.links {
		links = append(links, m.id(l.to.sum))
	}
	g := &m.blocks[id]
	g.state |= gcStored
	if b.odd {
		g.state |= gcOdd
	}
	g.size, g.links = uint32(b.size), links
	if len(b.stone) > 0 {
		m.stones[b.sum] = b.stone
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

// reach marks everything from the heads and the reflog on, and then what the runs that were deleted reached.
func (c *collector) reach(ctx context.Context) error {
	heads, err := c.s.rawHeads(ctx)
	if err != nil {
		return err
	}
	c.heads = heads
	var stones []protocol.Link
	for name, h := range heads {
		if err := c.from(ctx, h, "head "+name); err != nil {
			return err
		}
		if _, ok := protocol.RunDeleted(name); ok {
			stones = append(stones, h)
		}
	}
	since := c.clock - ReflogKept.Microseconds()
	err = c.s.eachPart(ctx, [][]byte{bucketReflog}, nil, nil, func(part []entry) error {
		for _, it := range part {
			if err := c.lines(ctx, it, since); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.reachMemos(ctx); err != nil {
		return err
	}
	for _, l := range stones {
		n, _ := nameOf(l)
		for _, was := range c.marks.stones[n.sum] {
			if was, ok := nameOf(was); ok {
				c.bury(was)
			}
		}
	}
	return nil
}

// lines marks what the moves of a head in a chunk of the reflog lead to, as far as it is still there: what is not was
// collected when it was older than the reflog kept.
func (c *collector) lines(ctx context.Context, chunk entry, since int64) error {
	moves, err := movesIn(chunk, since)
	for _, n := range moves {
		if err == nil && c.has(ctx, n) {
			name, _, _ := strings.Cut(string(chunk.key), "\x00")
			err = c.from(ctx, n.link(), "reflog of "+name)
		}
	}
	return err
}

// movesIn is what a head moved to since then, by a chunk of its reflog.
func movesIn(chunk entry, since int64) (out []blockName, err error) {
	var x rawLine
	for rd := (reader{b: chunk.value}); len(rd.b) > 0; {
		x = rd.rawLine(x)
		line, err := x.line()
		if rd.bad || err != nil {
			name, _, _ := strings.Cut(string(chunk.key), "\x00")
			return nil, fmt.Errorf("the reflog of %s is damaged; wf verify tells more: %w", name, protocol.ErrCorrupt)
		}
		if n, ok := nameOf(line.New); ok && line.TS >= since {
			out = append(out, n)
		}
	}
	return out, nil
}

// rawHeads are the heads by name.
func (s *Store) rawHeads(ctx context.Context) (map[string]protocol.Link, error) {
	var all []entry
	err := s.view(ctx, func(tx *bolt.Tx) error {
		all = nil
		return tx.Bucket(bucketRefs).ForEach(func(k, v []byte) error {
			all = append(all, entry{bytes.Clone(k), bytes.Clone(v)})
			return nil
		})
	})
	out := make(map[string]protocol.Link, len(all))
	for _, it := range all {
		h, damage := parseHead(string(it.key), it.value)
		if damage != nil {
			return nil, damage
		}
		out[h.Name] = h.Link
	}
	return out, err
}

// has reports whether a block is stored.
func (c *collector) has(ctx context.Context, n blockName) bool {
	return c.ensure(ctx, c.s, n) == nil
}

// blockSource gives blocks: a store, or one transaction of it.
type blockSource interface {
	Block(context.Context, protocol.Link) ([]byte, error)
}

// ensure takes a block into the graph that was stored after its pack was passed.
func (c *collector) ensure(ctx context.Context, from blockSource, n blockName) error {
	if id, ok := c.marks.ids[n.sum]; ok && c.marks.blocks[id].state&gcStored != 0 {
		return nil
	}
	data, err := from.Block(ctx, n.link())
	if err != nil {
		return err
	}
	b := lookAt(&unpacked{n.codec, n.sum, data})
	c.marks.add(&b)
	return nil
}

// from marks what a block leads to.
func (c *collector) from(ctx context.Context, root protocol.Link, what string) error {
	return c.follow(ctx, c.s, root, what)
}

func (c *collector) follow(ctx context.Context, source blockSource, root protocol.Link, what string) error {
	n, ok := nameOf(root)
	if !ok {
		return noBlockOfStore(what, root)
	}
	missing := func(sum [32]byte, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s reaches block %s, which is missing or damaged; nothing was removed, wf verify tells more: %w: %w", what, linkOf(0x71, sum[:]), protocol.ErrCorrupt, err)
	}
	if err := c.ensure(ctx, source, n); err != nil {
		return missing(n.sum, err)
	}
	for todo := []uint32{c.marks.ids[n.sum]}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		b := &c.marks.blocks[id]
		if b.state&gcLive != 0 {
			continue
		}
		if b.state&gcStored == 0 {
			if err := c.ensureAny(ctx, source, c.marks.sums[id]); err != nil {
				return missing(c.marks.sums[id], err)
			}
			b = &c.marks.blocks[id]
		}
		if b.state&gcOdd != 0 {
			return missing(c.marks.sums[id], errors.New("it is not strict DAG-CBOR"))
		}
		b.state |= gcLive
		c.fresh = append(c.fresh, id)
		todo = append(todo, b.links...)
		if len(todo)%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func noBlockOfStore(what string, l protocol.Link) error {
	return fmt.Errorf("%s: %s is no block of this store: %w", what, l, protocol.ErrCorrupt)
}

// ensureAny is ensure for a block of which only the digest is known.
func (c *collector) ensureAny(ctx context.Context, source blockSource, sum [32]byte) error {
	err := c.ensure(ctx, source, blockName{0x71, sum})
	if errors.Is(err, protocol.ErrNotFound) {
		err = c.ensure(ctx, source, blockName{cid.Raw, sum})
	}
	return err
}

// bury marks what the newest event of a deleted run leads to and nothing else reaches.
func (c *collector) bury(n blockName) {
	id, ok := c.marks.ids[n.sum]
	if !ok {
		return // collected before
	}
	for todo := []uint32{id}; len(todo) > 0; {
		b := &c.marks.blocks[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		if b.state&(gcLive|gcBuried) == 0 && b.state&gcStored != 0 {
			b.state |= gcBuried
			todo = append(todo, b.links...)
		}
	}
}

// indexSum holds the index against the packs by sums over their entries, while others go on: an entry of a pack
// that is read is in the index, or was among the late ones at the beginning.
type indexSum struct {
	seed            maphash.Seed
	late            map[[lateSize]byte]bool
	expect, indexed uint64
}

func (s *Store) beginIndexSum(ctx context.Context) (*indexSum, error) {
	x := &indexSum{seed: maphash.MakeSeed()}
	err := s.view(ctx, func(tx *bolt.Tx) error {
		x.late = map[[lateSize]byte]bool{}
		late := tx.Bucket(bucketMeta).Get(keyLate)
		for ; len(late) >= lateSize; late = late[lateSize:] {
			x.late[[lateSize]byte(late)] = true
		}
		return nil
	})
	return x, err
}

// packed counts a block of a pack.
func (x *indexSum) packed(sum, pack []byte, at int) {
	var b [lateSize]byte
	copy(b[:], sum[:8])
	copy(b[8:], pack)
	b[lateSize-1] = byte(at)
	x.expect += maphash.Bytes(x.seed, b[:])
	if x.late[b] {
		x.indexed += maphash.Bytes(x.seed, b[:])
	}
}

// wrong reports whether the index lacks entries of the packs that were read. Where the sums differ, as they do when
// entries were added meanwhile, all are looked up.
func (x *indexSum) wrong(ctx context.Context, c *collector) (bool, error) {
	s, upTo := c.s, c.now
	found := x.indexed
	err := s.eachPart(ctx, [][]byte{bucketIndex, indexBlocks}, nil, nil, func(part []entry) error {
		for _, it := range part {
			for v := it.value; len(v) >= placeSize && len(it.key) == 8; v = v[placeSize:] {
				var b [lateSize]byte
				copy(b[:], it.key)
				copy(b[8:], v[:placeSize])
				if !x.late[b] && upTo.holds(string(b[8:8+packKeySize]), int(b[lateSize-1])) {
					found += maphash.Bytes(x.seed, b[:])
				}
			}
		}
		return nil
	})
	if err != nil || found == x.expect {
		return false, err
	}
	return s.lacks(ctx, c.packs, c.marks.sums)
}

// lacks looks each block of the packs up, as readers do.
func (s *Store) lacks(ctx context.Context, packs []seenPack, sums [][32]byte) (lacks bool, err error) {
	for len(packs) > 0 && !lacks && err == nil {
		err = s.view(ctx, func(tx *bolt.Tx) error {
			lk := s.newLookup(tx)
			for begun := time.Now(); len(packs) > 0 && time.Since(begun) < sliceTime; packs = packs[1:] {
				for i, id := range packs[0].blocks {
					want := place{[packKeySize]byte([]byte(packs[0].key)), byte(i)}
					if lacks = !slices.Contains(lk.places(string(sums[id][:])), want); lacks {
						return nil
					}
				}
			}
			return nil
		})
	}
	return lacks, err
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
