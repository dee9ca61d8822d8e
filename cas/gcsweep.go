package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// keyGC in meta holds how far the store had got at earlier collections: unix µs, newest pack
// and blocks in it, 8 bytes each, big-endian, oldest first. That is how old a block is known
// to be.
var keyGC = []byte("gc")

const gcMarkSize = 24

// gcMarks is how many collections are remembered.
const gcMarks = 64

// gcKeys is how many keys one transaction of a collection changes about, blobsAtOnce how many files it removes.
const (
	gcKeys      = 1000
	blobsAtOnce = 100
)

// extent is how far a store has got: up to some block of its newest pack.
type extent struct {
	pack   string
	blocks int
}

// holds reports whether a place lies within e.
func (e extent) holds(pack string, index int) bool {
	return pack < e.pack || pack == e.pack && index < e.blocks
}

// sweep removes the dead blocks in small transactions. Packs with live blocks among the
// dead are written anew without them.
func (c *collector) sweep(ctx context.Context) error {
	todo := slices.DeleteFunc(slices.Clone(c.packs), func(p seenPack) bool { return p.dead == 0 })
	for len(todo) > 0 {
		left := todo
		err := c.s.update(ctx, func(tx *bolt.Tx) error {
			left = todo
			lk := c.s.newLookup(tx)
			if err := c.catchUp(ctx, tx, inTx{lk}); err != nil {
				return err
			}
			keys := 0
			for begun := time.Now(); len(left) > 0 && keys < gcKeys && (keys == 0 || time.Since(begun) < sliceTime); left = left[1:] {
				keys += 2*len(left[0].blocks) + 1
				if err := c.removePack(tx, left[0]); err != nil {
					return err
				}
				if p := left[0]; c.crowded && p.blob && !c.named(c.s.newLookup(tx), hex.EncodeToString(p.sum[:])) { // it, or another pack, may be named since
					if err := c.s.emptyBlob(left[0].sum); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		todo = left
	}
	return nil
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
func (c *collector) catchUp(ctx context.Context, tx *bolt.Tx, source blockSource) error {
	return tx.Bucket(bucketRefs).ForEach(func(k, v []byte) error {
		h, err := parseHead(string(k), v)
		if err != nil || c.heads[h.Name] == h.Link {
			return err
		}
		if err := c.follow(ctx, source, h.Link, "head "+h.Name); err != nil {
			return err
		}
		c.heads[h.Name] = h.Link
		return nil
	})
}

// inTx gives the blocks of one transaction.
type inTx struct{ lk *lookup }

// Block finds a block, and hashes it.
func (e inTx) Block(_ context.Context, l protocol.Link) ([]byte, error) { return e.lk.block(l) }

// kept are the blocks of a pack that stay.
func (c *collector) kept(p *seenPack, us []unpacked) (keep []Block) {
	for i := range us {
		if c.keeps(p, us, i) {
			keep = append(keep, blockOf(&us[i]))
		}
	}
	return keep
}

// keeps reports whether a block of a pack stays. What was added to the pack since was not judged.
func (c *collector) keeps(p *seenPack, us []unpacked, i int) bool {
	return i >= len(p.blocks) || c.marks.sums[p.blocks[i]] != us[i].digest || c.judge(p.key, i, p.blocks[i]) != blockDead
}

// inPlace are the blocks of a pack that stay, at their places: one without bytes lies where one was that does not.
func (c *collector) inPlace(p *seenPack, us []unpacked) []Block {
	out := make([]Block, len(us))
	for i := range us {
		if out[i] = Raw(nil); c.keeps(p, us, i) {
			out[i] = blockOf(&us[i])
		}
	}
	return out
}

// unpack is that of the store, and of a blob whose file a collection has emptied gives what is left: its digest.
func (c *collector) unpack(stored []byte) ([]unpacked, error) {
	us, err := c.s.unpack(stored)
	if errors.Is(err, errEmptied) {
		return []unpacked{{digest: [sha256.Size]byte(stored[1:])}}, nil
	}
	return us, err
}

// emptiedBegin begins the name of a file of blobs that a collection has emptied before the pack that names it is gone.
const emptiedBegin = "gone-"

// errEmptied is for the block of such a file, which nothing reached. It wraps nothing: each error of a code is any other of it.
var errEmptied = errors.New("a collection that was cut off has removed it, and wf gc ends that")

// emptied is where the file of a blob lies when it was emptied.
func emptied(path string) string {
	return filepath.Join(filepath.Dir(path), emptiedBegin+filepath.Base(path))
}

// emptyBlob has the file of a blob take no room, and says so by another name. One that was emptied before is.
func (s *Store) emptyBlob(sum [sha256.Size]byte) error {
	path := s.blobPath(sum[:])
	err := os.Rename(path, emptied(path))
	if err == nil {
		err = files.SyncDir(filepath.Dir(path))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Truncate(emptied(path), 0)
	}
	return classify(err)
}

func blockOf(u *unpacked) Block { return Block{linkOf(u.codec, u.digest[:]), u.data} }

func (c *collector) removePack(tx *bolt.Tx, p seenPack) error {
	lk := c.s.newLookup(tx)
	key := []byte(p.key)
	us, err := c.unpack(lk.packs.Get(key))
	if err != nil {
		return fmt.Errorf("pack %s: %w", packNumber(key), err)
	}
	keep := c.kept(&p, us)
	if len(keep) == len(us) {
		return nil // reached again since
	}
	for i := range us {
		if err := dropPlace(lk.index, us[i].digest[:8], place{[packKeySize]byte(key), byte(i)}); err != nil {
			return err
		}
	}
	if err := lk.dropLate(key); err != nil {
		return err
	}
	if err := lk.packs.Delete(key); err != nil {
		return err
	}
	if p.blob {
		c.blobs[p.sum] = false
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
	old, err := c.oldFiles(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(old, blobsAtOnce) {
		err := c.s.alone(ctx, func(path string) error {
			db, err := openDB(path, &c.s.opts, false)
			if err != nil {
				return err
			}
			err = guard(func() error {
				return db.View(func(tx *bolt.Tx) error {
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
			})
			return errors.Join(err, db.Close())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// oldFiles are the blob files, and what is left of some that were cut off, beyond the grace period.
func (c *collector) oldFiles(ctx context.Context) (old []string, err error) {
	err = c.s.eachBlob(ctx, func(path string, fi fs.FileInfo) {
		age, atLeast := time.Duration(c.clock-fi.ModTime().UnixMicro())*time.Microsecond, c.o.Grace
		sum, err := hex.DecodeString(fi.Name())
		ours := err == nil && len(sum) == sha256.Size
		if ours {
			if named, known := c.blobs[[32]byte(sum)]; known && !named {
				atLeast = 0 // its pack went in this collection
			}
		}
		if strings.HasPrefix(fi.Name(), "new-") {
			ours, atLeast = true, max(atLeast, time.Hour) // it may be being written
		}
		if ours && age >= atLeast || strings.HasPrefix(fi.Name(), emptiedBegin) {
			old = append(old, path)
		}
	})
	return old, err
}

// named reports whether a pack names a blob file now.
func (c *collector) named(lk *lookup, file string) bool {
	file, gone := strings.CutPrefix(file, emptiedBegin)
	sum, err := hex.DecodeString(file)
	if err != nil || len(sum) != sha256.Size {
		return false
	}
	if gone {
		if _, err := os.Lstat(c.s.blobPath(sum)); err == nil {
			return false // it was stored again
		}
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
