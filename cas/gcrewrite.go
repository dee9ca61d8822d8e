package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// Where much of a store is dead or free, a new store.db is written beside the old one while others go on:
//
//	packs up to the newest, without what is dead ─┐
//	heads, reflog, derived values ────────────────┼─► store.db.compact ─► read again and hashed
//	an index made of the packs ───────────────────┘
//	then, with the store held: what changed since ─► rename
//
// A pack never changes but by a collection, and the newest one by growing: so of the packs only those from the
// newest on are looked at again. Of the rest what belongs to heads that moved is copied again, and derived
// values with another checksum.

// worthRewriting reports whether a quarter of store.db is dead or free, or its index wrong.
func (c *collector) worthRewriting(ctx context.Context) (bool, error) {
	if c.reindex {
		return true, nil
	}
	size := fileSize(c.s)
	free := int64(0)
	err := c.s.view(ctx, func(tx *bolt.Tx) error {
		return readPages(tx.DB().Path(), func(p *pageFile) error { free = p.freePages() * p.page; return nil })
	})
	return size > 256<<10 && c.waste+free > size/4, err
}

// freePages is how many pages the list of free ones has.
func (p *pageFile) freePages() int64 {
	list, err := p.image(p.free, pageFree)
	if err != nil {
		return 0 // without a list none are known
	}
	return int64(freeCount(list))
}

// rewriter is the writing of a new store.db.
type rewriter struct {
	*collector
	tmp     string
	db      *bolt.DB
	at      string            // key of the first pack that is not copied
	index   [][lateSize]byte  // entries for the packs that are
	refs    map[string]string // heads when the copying of what belongs to them began
	derived map[string]string // checksums of the derived values that are copied
	sum     maphash.Hash      // of the packs that are copied
}

// rewrite writes store.db anew without what is dead.
func (c *collector) rewrite(ctx context.Context) (err error) {
	w := rewriter{collector: c, tmp: filepath.Join(c.s.Dir(), fileDB) + ".compact", at: string(packKey(0)), refs: map[string]string{}, derived: map[string]string{}}
	if err := removeIfThere(w.tmp); err != nil {
		return classify(err)
	}
	if err := w.open(); err != nil {
		return errors.Join(classify(err), removeIfThere(w.tmp))
	}
	err = w.write(ctx)
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	if err != nil {
		err = errors.Join(classify(err), removeIfThere(w.tmp))
	}
	return err
}

func (w *rewriter) open() (err error) {
	w.db, err = bolt.Open(w.tmp, 0o600, boltOptions(true))
	if err == nil {
		w.db.NoSync = true // as a whole before it is put in place
		w.db.AllocSize = 1 << 20
	}
	return err
}

func (w *rewriter) write(ctx context.Context) error {
	if err := w.copyPacks(ctx, w.now.pack); err != nil {
		return err
	}
	if err := w.copyRest(ctx); err != nil {
		return err
	}
	for range 8 { // what came meanwhile, until it is little
		newest, err := w.newestPack(ctx)
		if err != nil {
			return err
		}
		if near(w.at, newest) {
			break
		}
		if err := w.copyPacks(ctx, newest); err != nil {
			return err
		}
	}
	if err := w.writeIndex(); err != nil {
		return err
	}
	if err := w.proof(ctx); err != nil {
		return err
	}
	return w.swap(ctx)
}

// near reports whether few packs lie between two keys.
func near(a, b string) bool {
	const few = 32
	number := func(key string) (n uint64) {
		for _, x := range []byte(key) {
			n = n<<8 | uint64(x)
		}
		return n
	}
	return number(b) <= number(a)+few
}

func (w *rewriter) newestPack(ctx context.Context) (key string, err error) {
	err = w.s.view(ctx, func(tx *bolt.Tx) error {
		key = string(packKey(tx.Bucket(bucketBlocks).Sequence()))
		return nil
	})
	return key, err
}

// put writes a part of a bucket.
func (w *rewriter) put(path [][]byte, part []entry) error {
	if err := w.s.opts.before(OpRewrite); err != nil {
		return err
	}
	return w.db.Update(func(tx *bolt.Tx) error {
		b, err := bucketAt(tx, path)
		if err != nil {
			return err
		}
		b.FillPercent = 1 // keys come in their order
		for _, it := range part {
			if err := b.Put(it.key, it.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// bucketAt finds a bucket, and makes it.
func bucketAt(tx *bolt.Tx, path [][]byte) (b *bolt.Bucket, err error) {
	b, err = tx.CreateBucketIfNotExists(path[0])
	for _, name := range path[1:] {
		if err == nil {
			b, err = b.CreateBucketIfNotExists(name)
		}
	}
	return b, err
}

// copyPacks copies the packs from w.at to below a key, of which none changes any more.
func (w *rewriter) copyPacks(ctx context.Context, below string) error {
	path := [][]byte{bucketBlocks}
	from := []byte(w.at)
	err := w.s.eachPart(ctx, path, before(from), []byte(below), func(part []entry) error {
		var out []entry
		for _, it := range part {
			v, blocks, err := w.packed(it)
			if err != nil {
				return err
			}
			if v == nil {
				continue
			}
			for i, sum := range blocks {
				w.enter(sum, it.key, i)
			}
			out = append(out, entry{it.key, v})
			w.hash(it.key, v)
		}
		return w.put(path, out)
	})
	if below > w.at {
		w.at = below
	}
	return err
}

// before is the key right before another one: eachPart begins behind it.
func before(key []byte) []byte {
	out := bytes.Clone(key)
	for i := len(out) - 1; i >= 0; i-- {
		out[i]--
		if out[i] != 0xff {
			return out
		}
	}
	return nil // the key is the first one
}

func (w *rewriter) hash(key, value []byte) {
	w.sum.Write(key)
	w.sum.Write(value)
}

// enter notes an entry of the index.
func (w *rewriter) enter(sum [32]byte, pack []byte, at int) {
	var e [lateSize]byte
	copy(e[:], sum[:8])
	copy(e[8:], pack)
	e[lateSize-1] = byte(at)
	w.index = append(w.index, e)
}

// packed is a pack as it is copied, with the digests of its blocks; nil for one of which nothing is left. In a pack that
// a collection notes as the newest one blocks keep their places, by which their age is known.
func (w *rewriter) packed(it entry) (stored []byte, sums [][32]byte, err error) {
	n, seen := slices.BinarySearchFunc(w.packs, string(it.key), func(p seenPack, key string) int { return bytes.Compare([]byte(p.key), []byte(key)) })
	if seen && w.packs[n].dead == 0 && w.packs[n].key < w.now.pack {
		for _, id := range w.packs[n].blocks {
			sums = append(sums, w.marks.sums[id])
		}
		return it.value, sums, nil
	}
	us, err := w.unpack(it.value)
	if err != nil {
		return nil, nil, fmt.Errorf("pack %s: %w", packNumber(it.key), err)
	}
	if seen {
		p := &w.packs[n]
		keep := w.kept(p, us)
		switch {
		case len(keep) == 0:
			if p.blob {
				w.blobs[p.sum] = false
			}
			return nil, nil, nil
		case len(keep) < len(us):
			if w.extents[p.key] || p.key == w.now.pack {
				keep = w.inPlace(p, us)
			}
			us = toPack(keep)
			it.value = pack(keep)
		}
	}
	for i := range us {
		sums = append(sums, us[i].digest)
	}
	return it.value, sums, nil
}

// copyRest copies what is not packs nor their index.
func (w *rewriter) copyRest(ctx context.Context) error {
	if err := w.s.view(ctx, func(tx *bolt.Tx) error { // first: what moves from here on is copied again
		return tx.Bucket(bucketRefs).ForEach(func(k, v []byte) error { w.refs[string(k)] = string(v); return nil })
	}); err != nil {
		return err
	}
	for _, path := range [][][]byte{{bucketRefs}, {bucketReflog}, {bucketIndex, indexEvents}, {bucketIndex, indexBases}, {bucketIndex, indexForks}, {bucketIndex, indexDerived}} {
		err := w.s.eachPart(ctx, path, nil, nil, func(part []entry) error {
			if len(path) == 2 && bytes.Equal(path[1], indexDerived) {
				for _, it := range part {
					w.derived[string(it.key)] = checksumOf(it.value)
				}
			}
			return w.put(path, part)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checksumOf is the beginning of a derived value, which tells it from others.
func checksumOf(v []byte) string { return string(v[:min(len(v), sumSize)]) }

// writeIndex makes the index of the packs that were copied.
func (w *rewriter) writeIndex() error {
	slices.SortFunc(w.index, func(a, b [lateSize]byte) int { return bytes.Compare(a[:], b[:]) })
	var part []entry
	for i, e := range w.index {
		if n := len(part); n > 0 && bytes.Equal(part[n-1].key, e[:8]) {
			part[n-1].value = append(part[n-1].value, e[8:]...)
		} else {
			if n >= 1<<16 {
				if err := w.put([][]byte{bucketIndex, indexBlocks}, part); err != nil {
					return err
				}
				part = nil
			}
			part = append(part, entry{w.index[i][:8], bytes.Clone(e[8:])})
		}
	}
	err := w.put([][]byte{bucketIndex, indexBlocks}, part)
	w.index = nil
	return err
}

// proof has the new file on disk, and reads its packs again.
func (w *rewriter) proof(ctx context.Context) error {
	if err := errors.Join(w.db.Sync(), w.db.Close()); err != nil {
		return err
	}
	w.db = nil
	var again maphash.Hash
	again.SetSeed(w.sum.Seed())
	var damage error
	err := readPages(w.tmp, func(p *pageFile) error {
		p.fault = func(what string) { damage = fmt.Errorf("%s: %s: %w", w.tmp, what, protocol.ErrCorrupt) }
		t, ok := p.sub(bucketBlocks)
		if !ok { // nothing is reached
			return nil
		}
		return t.whole(func(it pageItem) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			again.Write(it.key)
			again.Write(it.value)
			return nil
		})
	})
	if err = errors.Join(err, damage); err == nil && again.Sum64() != w.sum.Sum64() {
		err = fmt.Errorf("%s does not hold what was written to it: %w", w.tmp, protocol.ErrCorrupt)
	}
	return errors.Join(err, w.open())
}

// swap holds the store, copies what changed, and puts the new file in the place of the old one.
func (w *rewriter) swap(ctx context.Context) error {
	return w.s.alone(ctx, func(path string) error {
		src, err := openDB(path, &w.s.opts, false)
		if err != nil {
			return err
		}
		err = guard(func() error {
			return src.View(func(from *bolt.Tx) error {
				return w.db.Update(func(to *bolt.Tx) error { return w.catchUp(ctx, from, to) })
			})
		})
		err = errors.Join(err, src.Close(), w.db.Sync(), w.db.Close())
		w.db = nil
		if err == nil {
			err = w.s.opts.before(OpSwap)
		}
		if err == nil {
			err = os.Rename(w.tmp, path)
		}
		if err != nil {
			return err
		}
		return classify(files.SyncDir(w.s.Dir()))
	})
}

// alone calls f with the path of store.db while no one else has the store, in this process neither.
func (s *Store) alone(ctx context.Context, f func(path string) error) error {
	resume := s.gate.pause()
	defer resume()
	g, err := bareGate(s.Dir(), s.opts)
	if err != nil {
		return err
	}
	defer g.shut()
	h, err := g.enter(ctx, true)
	if err != nil {
		return err
	}
	defer g.leave(h, true)
	return f(filepath.Join(s.Dir(), fileDB))
}

// catchUp copies what changed since it was copied.
func (w *rewriter) catchUp(ctx context.Context, from, to *bolt.Tx) error {
	for _, name := range layoutBuckets {
		if _, err := to.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	for _, name := range layoutIndexes {
		if _, err := to.Bucket(bucketIndex).CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	lk := w.s.newLookup(from)
	fresh := len(w.fresh)
	if err := w.collector.catchUp(ctx, from, inTx{lk}); err != nil {
		return err
	}
	err := from.Bucket(bucketMeta).ForEach(func(k, v []byte) error { return to.Bucket(bucketMeta).Put(k, v) })
	if err == nil {
		err = to.Bucket(bucketMeta).Put(keyLate, []byte{})
	}
	if err == nil {
		err = w.lastPacks(lk, from, to, w.fresh[fresh:])
	}
	if err == nil {
		err = w.lastHeads(from, to)
	}
	if err == nil {
		err = w.lastDerived(from, to)
	}
	return err
}

// lastPacks copies the packs that came since, and those blocks that were taken for dead and are reached now.
func (w *rewriter) lastPacks(lk *lookup, from, to *bolt.Tx, fresh []uint32) error {
	src, dst, index := from.Bucket(bucketBlocks), to.Bucket(bucketBlocks), sub(to, indexBlocks)
	seek := index.Cursor()
	enter := func(sum [32]byte, key []byte, at int) error {
		return addPlace(index, seek, sum[:8], append(bytes.Clone(key), byte(at)))
	}
	c := src.Cursor()
	for k, v := c.Seek([]byte(w.at)); k != nil; k, v = c.Next() {
		v, sums, err := w.packed(entry{k, v})
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		if err := dst.Put(bytes.Clone(k), v); err != nil {
			return err
		}
		for i := range sums {
			if err := enter(sums[i], k, i); err != nil {
				return err
			}
		}
	}
	if err := dst.SetSequence(src.Sequence()); err != nil {
		return err
	}
	there := w.s.newLookup(to)
	for _, id := range fresh {
		sum := w.marks.sums[id]
		if there.stored(sum) {
			continue
		}
		b, err := lk.anyBlock(sum)
		if err != nil {
			return err
		}
		stored, err := w.s.stored([]Block{b})
		if err != nil {
			return err
		}
		n, err := dst.NextSequence()
		if err != nil {
			return err
		}
		if err := dst.Put(packKey(n), stored); err != nil {
			return err
		}
		if err := enter(sum, packKey(n), 0); err != nil {
			return err
		}
		if stored[0] == packBlob {
			w.blobs[sum] = true
		}
	}
	return nil
}

// stored reports whether a block with a digest is there.
func (lk *lookup) stored(sum [32]byte) bool {
	for _, p := range lk.places(string(sum[:])) {
		if u, err := lk.at(p); err == nil && u.digest == sum {
			return true
		}
	}
	return false
}

// anyBlock finds a block by its digest.
func (lk *lookup) anyBlock(sum [32]byte) (Block, error) {
	for _, p := range lk.places(string(sum[:])) {
		if u, err := lk.at(p); err == nil && u.digest == sum {
			return Block{linkOf(u.codec, sum[:]), u.data}, nil
		}
	}
	return Block{}, fmt.Errorf("block %x: %w", sum, protocol.ErrNotFound)
}

// lastHeads copies what belongs to heads that moved, and removes what belongs to those that are gone.
func (w *rewriter) lastHeads(from, to *bolt.Tx) error {
	err := from.Bucket(bucketRefs).ForEach(func(k, v []byte) error {
		name := string(k)
		was, had := w.refs[name]
		delete(w.refs, name)
		if had && was == string(v) {
			return nil
		}
		if err := dropHead(to, name); err != nil {
			return err
		}
		if err := to.Bucket(bucketRefs).Put(bytes.Clone(k), v); err != nil {
			return err
		}
		if base := sub(from, indexBases).Get(k); base != nil {
			if err := setBase(to, name, base); err != nil {
				return err
			}
		}
		prefix := append(bytes.Clone(k), 0)
		if err := copyPrefix(from.Bucket(bucketReflog), to.Bucket(bucketReflog), prefix); err != nil {
			return err
		}
		return copyPrefix(sub(from, indexEvents), sub(to, indexEvents), prefix)
	})
	for name := range w.refs { // gone since
		if err == nil {
			err = dropHead(to, name)
		}
	}
	return err
}

// copyPrefix copies the entries with keys that begin with prefix.
func copyPrefix(from, to *bolt.Bucket, prefix []byte) error {
	c := from.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if err := to.Put(bytes.Clone(k), v); err != nil {
			return err
		}
	}
	return nil
}

// lastDerived copies the derived values that are others now, and removes those that are gone.
func (w *rewriter) lastDerived(from, to *bolt.Tx) error {
	dst := sub(to, indexDerived)
	err := sub(from, indexDerived).ForEach(func(k, v []byte) error {
		key := string(k)
		was, had := w.derived[key]
		delete(w.derived, key)
		if had && was == checksumOf(v) && dst.Get(k) != nil {
			return nil
		}
		return dst.Put(bytes.Clone(k), v)
	})
	for key := range w.derived {
		if err == nil {
			err = dst.Delete([]byte(key))
		}
	}
	return err
}
