package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// keyGC in meta holds how far the store had got at earlier collections: unix µs, newest pack
// and blocks in it, 8 bytes each, big-endian, oldest first. That is how old a block is known
// to be.
var keyGC = []byte("gc")

const gcMarkSize = 24

// gcMarks is how many collections are remembered.
const gcMarks = 64

// gcKeys is how many keys one transaction of a collection changes.
const gcKeys = 1000

// extent is how far a store has got: up to some block of its newest pack.
type extent struct {
	pack   string
	blocks int
}

// holds reports whether a place lies within e.
func (e extent) holds(pack string, index int) bool {
	return pack < e.pack || pack == e.pack && index < e.blocks
}

// outlived is the extent that has outlived the grace period.
func (c *collector) outlived(d *storeEvidence) extent {
	if c.o.Grace <= 0 {
		return c.now
	}
	var old extent
	t, _ := d.pages.sub(bucketMeta)
	if it, ok := t.find(keyGC); ok {
		for v := it.value; len(v) >= gcMarkSize; v = v[gcMarkSize:] {
			if int64(binary.BigEndian.Uint64(v)) <= c.clock-c.o.Grace.Microseconds() {
				old = extent{string(packKey(binary.BigEndian.Uint64(v[8:]))), int(binary.BigEndian.Uint32(v[20:]))}
			}
		}
	}
	return old
}

// sweep removes the dead packs, some in each transaction. Packs with live blocks among the
// dead are written anew without them.
func (c *collector) sweep(ctx context.Context, r *GCReport) error {
	for len(c.dead) > 0 {
		err := c.s.update(ctx, func(tx *bolt.Tx) error {
			if err := c.catchUp(ctx, tx); err != nil {
				return err
			}
			for keys := 0; len(c.dead) > 0 && keys < gcKeys; c.dead = c.dead[1:] {
				p := c.dead[0]
				if keys > 0 && keys+2*len(p.sums)+1 > gcKeys {
					break
				}
				keys += 2*len(p.sums) + 1
				if err := c.removePack(tx, p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return c.s.update(ctx, c.note)
}

// note remembers how far the packs have got.
func (c *collector) note(tx *bolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	v := bytes.Clone(meta.Get(keyGC))
	v = binary.BigEndian.AppendUint64(v, uint64(c.clock))
	v = append(append(v, 0, 0, 0), c.now.pack...)
	v = binary.BigEndian.AppendUint64(v, uint64(c.now.blocks))
	return meta.Put(keyGC, v[max(0, len(v)-gcMarkSize*gcMarks):])
}

// catchUp marks what commits since have reached.
func (c *collector) catchUp(ctx context.Context, tx *bolt.Tx) error {
	g := &graph{nodes: map[blockName]*node{}, from: inTx{c.s.newLookup(tx)}}
	return tx.Bucket(bucketRefs).ForEach(func(k, v []byte) error {
		h, err := parseHead(string(k), v)
		if err != nil || c.heads[h.Name] == h.Link {
			return err
		}
		return c.head(ctx, g, h)
	})
}

// inTx is the evidence of one transaction.
type inTx struct{ lk *lookup }

func (e inTx) fetch(_ context.Context, n blockName) ([]byte, error) { return e.lk.block(n.link()) }

func (c *collector) removePack(tx *bolt.Tx, p seenPack) error {
	lk := c.s.newLookup(tx)
	key := []byte(p.key)
	us, err := c.s.unpack(lk.packs.Get(key))
	if err != nil {
		return fmt.Errorf("pack %s: %w", packNumber(key), err)
	}
	var keep []Block
	for i := range us {
		// What was added to the pack since was not judged.
		if _, live := c.live[us[i].digest]; live || i >= len(p.sums) || us[i].digest != p.sums[i] || !c.old.holds(p.key, i) {
			keep = append(keep, Block{linkOf(us[i].codec, us[i].digest[:]), us[i].data})
		}
	}
	if len(keep) == len(us) {
		return nil // reached again since
	}
	for i := range us {
		if err := dropPlace(lk.index, us[i].digest[:8], place{[packKeySize]byte(key), byte(i)}); err != nil {
			return err
		}
	}
	if err := lk.packs.Delete(key); err != nil {
		return err
	}
	if p.blob && len(p.sums) > 0 {
		c.blobs[p.sums[0]] = false
	}
	if len(keep) == 0 {
		return nil
	}
	lk = c.s.newLookup(tx)
	before := len(lk.late)
	if err := c.s.putPack(lk, packed{blocks: keep}); err != nil {
		return err
	}
	return lk.keepLate(before, len(lk.late))
}

// dropPlace takes one place of a block out of the index.
func dropPlace(index *bolt.Bucket, key []byte, gone place) error {
	var out []byte
	for _, at := range places(index.Get(key)) {
		if at != gone {
			out = append(append(out, at.pack[:]...), at.index)
		}
	}
	if len(out) == 0 {
		return index.Delete(key)
	}
	return index.Put(key, out)
}

// sweepBlobs removes the files that no pack names. A file is written before the commit that
// names it: so it must also be older than the grace period. The store is held meanwhile, and
// each commit makes sure that the file is there (putPack): so none is named after it is gone.
func (c *collector) sweepBlobs(ctx context.Context, r *GCReport) error {
	files, err := c.oldFiles(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(files, gcKeys) {
		err := c.s.update(ctx, func(tx *bolt.Tx) error {
			lk := c.s.newLookup(tx)
			for _, path := range some {
				if c.named(lk, filepath.Base(path)) {
					continue
				}
				if err := removeIfThere(path); err != nil {
					return classify(err)
				}
				r.Blobs++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// oldFiles are the blob files, and what is left of some that were cut off, beyond the grace period.
func (c *collector) oldFiles(ctx context.Context) (files []string, err error) {
	err = c.s.eachBlob(ctx, func(path string, fi fs.FileInfo) {
		age, atLeast := time.Duration(c.clock-fi.ModTime().UnixMicro())*time.Microsecond, c.o.Grace
		sum, err := hex.DecodeString(fi.Name())
		ours := err == nil && len(sum) == sha256.Size
		if strings.HasPrefix(fi.Name(), "new-") {
			ours, atLeast = true, max(atLeast, time.Hour) // it may be being written
		}
		if ours && age >= atLeast {
			files = append(files, path)
		}
	})
	return files, err
}

// named reports whether a pack names a blob file now.
func (c *collector) named(lk *lookup, file string) bool {
	sum, err := hex.DecodeString(file)
	if err != nil {
		return false
	}
	if c.blobs[[32]byte(sum)] {
		return true
	}
	for _, p := range lk.places(string(sum[:8])) {
		if v := lk.packs.Get(p.pack[:]); len(v) == 1+sha256.Size && v[0] == packBlob && bytes.Equal(v[1:], sum) {
			return true
		}
	}
	return false
}

// reindex throws the index away and makes it anew.
func (s *Store) reindex(ctx context.Context) error {
	return s.update(ctx, func(tx *bolt.Tx) error {
		index := tx.Bucket(bucketIndex)
		for _, b := range [][]byte{indexBlocks, indexEvents} {
			if index != nil && index.Bucket(b) != nil {
				if err := index.DeleteBucket(b); err != nil {
					return err
				}
			}
		}
		return s.rebuild(tx)
	})
}
