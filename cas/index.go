package cas

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// errNoIndex asks for the write lock, to rebuild what was lost.
var errNoIndex = errors.New("the index is gone")

// sub is a bucket of index, or nil.
func sub(tx *bolt.Tx, name []byte) *bolt.Bucket {
	if b := tx.Bucket(bucketIndex); b != nil {
		return b.Bucket(name)
	}
	return nil
}

// admit checks a freshly opened database: the layout is one we know, and the index is there
// or made again.
func (s *Store) admit(db *bolt.DB) error {
	missing, unrelated, remake := false, false, s.rebuild
	err := guard(func() error {
		return db.View(func(tx *bolt.Tx) error {
			meta := tx.Bucket(bucketMeta)
			if tx.Bucket(bucketBlocks) == nil || tx.Bucket(bucketRefs) == nil {
				return fmt.Errorf("%s: it lacks the buckets of a wf store: %w", db.Path(), protocol.ErrStore)
			}
			if meta != nil { // a lost meta bucket is no reason to refuse the blocks
				if v := meta.Get(keyVersion); len(v) != 1 || v[0] > layoutVersion {
					return fmt.Errorf("%s has layout %s, this wf knows up to %d: %w", db.Path(), strings.Trim(fmt.Sprint(v), "[]"), layoutVersion, protocol.ErrNewerStore)
				}
			}
			missing = !indexed(tx) || tx.Bucket(bucketReflog) == nil
			for _, name := range layoutIndexes {
				missing = missing || sub(tx, name) == nil
			}
			unrelated = !kinKnown(tx)
			if missing && s.opts.ReadOnly && s.ghost == nil {
				s.ghost = map[string][]byte{}
				return s.locate(tx, func(key, at []byte) error {
					s.ghost[string(key)] = append(s.ghost[string(key)], at...)
					return nil
				})
			}
			return nil
		})
	})
	var damaged *panicked
	if errors.As(err, &damaged) && !s.opts.ReadOnly && errors.Is(guard(func() error { return db.View(checkIndex) }), protocol.ErrCorrupt) {
		err, missing, remake = nil, true, s.renew
	}
	switch {
	case err != nil:
		return err
	case !missing && !unrelated || s.opts.ReadOnly:
		return nil
	case db.IsReadOnly():
		return errNoIndex
	}
	err = guard(func() error { return db.Update(remake) })
	if damaged == nil && errors.As(err, &damaged) { // what is left of the index was met for the first time
		err = guard(func() error { return db.Update(s.renew) })
	}
	if err != nil {
		return fmt.Errorf("rebuild the index of %s: %w", db.Path(), classify(err))
	}
	if damaged != nil {
		s.indexRenewed(damaged)
	}
	return nil
}

func isEmpty(b *bolt.Bucket) bool {
	k, _ := b.Cursor().First()
	return k == nil
}

// rebuild makes the missing buckets, and finds every block and what runs share anew. Checkpoints of journals are
// made again when they are missed.
func (s *Store) rebuild(tx *bolt.Tx) error {
	for _, name := range layoutBuckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta, index := tx.Bucket(bucketMeta), tx.Bucket(bucketIndex)
	if err := meta.Put(keyVersion, []byte{layoutOf(tx)}); err != nil {
		return err
	}
	whole, related := indexed(tx), kinKnown(tx)
	if b := index.Bucket(indexBlocks); b != nil && !whole {
		if err := index.DeleteBucket(indexBlocks); err != nil {
			return err
		}
	}
	if err := indexOfForks(tx); err != nil {
		return err
	}
	for _, name := range layoutIndexes {
		if _, err := index.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if !whole {
		if err := meta.Put(keyLate, []byte{}); err != nil {
			return err
		}
		blocks := index.Bucket(indexBlocks)
		c := blocks.Cursor()
		if err := s.locate(tx, func(key, at []byte) error { return addPlace(blocks, c, key, at) }); err != nil {
			return err
		}
	}
	if related {
		return nil
	}
	return s.kinAnew(tx)
}

// indexed reports whether the index of blocks is there, and not empty beside blocks.
func indexed(tx *bolt.Tx) bool {
	meta, index := tx.Bucket(bucketMeta), sub(tx, indexBlocks)
	if meta == nil || index == nil || meta.Get(keyLate) == nil {
		return false
	}
	return !isEmpty(index) || len(meta.Get(keyLate)) > 0 || isEmpty(tx.Bucket(bucketBlocks))
}

// locate hashes every stored block and tells where it lies; a damaged pack is passed over.
func (s *Store) locate(tx *bolt.Tx, f func(key, at []byte) error) error {
	return tx.Bucket(bucketBlocks).ForEach(func(k, v []byte) error {
		u, err := s.unpack(v)
		if err != nil || len(k) != packKeySize {
			return nil // a reader finds these blocks missing; wf verify names the pack
		}
		for i := range u {
			at := append(append(make([]byte, 0, placeSize), k...), byte(i))
			if err := f(u[i].digest[:8], at); err != nil {
				return err
			}
		}
		return nil
	})
}

// addPlace notes one more place of a block, unless it is noted. c is a cursor of the index.
func addPlace(index *bolt.Bucket, c *bolt.Cursor, key, at []byte) error {
	have := valueAt(c, key)
	for v := have; len(v) >= placeSize; v = v[placeSize:] {
		if bytes.Equal(v[:placeSize], at) {
			return nil
		}
	}
	return index.Put(key, slices.Concat(have, at))
}

// valueAt is Bucket.Get by a cursor, which is used again and so makes no garbage.
func valueAt(c *bolt.Cursor, key []byte) []byte {
	if k, v := c.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}
