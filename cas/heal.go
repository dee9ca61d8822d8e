package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// The index is made from the blocks and the heads. A damaged page of it must not keep a process
// from them: when such a page is met the index is set aside, whole, and made anew.
//
//	index ─► lost/<n>     its pages are not freed, since that means to read them; a compaction
//	                      leaves them out

// healed reports whether the index was damaged and is made anew since renewals were counted: what
// ended with err is then worth another try. Damage shows as a panic within bbolt, or as a block
// that is not found; for those that are not there the index is looked at once.
func (s *Store) healed(ctx context.Context, err error, renewals int64) bool {
	var damaged *panicked
	missed := errors.Is(err, protocol.ErrNotFound) && !s.lookedOver.Swap(true)
	if s.opts.ReadOnly || !errors.As(err, &damaged) && !missed {
		return false
	}
	s.healing.Lock()
	defer s.healing.Unlock()
	if s.renewals.Load() != renewals {
		return true // by another goroutine, meanwhile
	}
	if bad := s.viewOnce(ctx, checkIndex); !errors.Is(bad, protocol.ErrCorrupt) {
		return false // it is sound, or that cannot be told
	}
	h, failed := s.gate.enter(ctx, true)
	if failed == nil {
		failed = s.write(h, s.renew)
	}
	if failed != nil {
		return false
	}
	s.indexRenewed(err)
	return true
}

func (s *Store) indexRenewed(why error) {
	s.renewals.Add(1)
	s.warn(fmt.Errorf("%s: its index was damaged and has been made anew: %w", s.gate.dir, why))
}

// checkIndex reads all of the index.
func checkIndex(tx *bolt.Tx) error {
	index := tx.Bucket(bucketIndex)
	if index == nil {
		return nil
	}
	return index.ForEachBucket(func(name []byte) error { return inOrder(index.Bucket(name), string(name) == string(indexBlocks)) })
}

// inOrder reads all of a bucket: its keys ascend, and in index/blocks they have their form.
func inOrder(b *bolt.Bucket, blocks bool) error {
	var last []byte
	return b.ForEach(func(k, v []byte) error {
		if last != nil && bytes.Compare(last, k) >= 0 || blocks && (len(k) != 8 || len(v) == 0 || len(v)%placeSize != 0) {
			return fmt.Errorf("index: the key %x: %w", k, protocol.ErrCorrupt)
		}
		last = k
		return nil
	})
}

// renew sets the index aside and makes it anew.
func (s *Store) renew(tx *bolt.Tx) error {
	lost, err := tx.CreateBucketIfNotExists(bucketLost)
	if err != nil {
		return err
	}
	n, err := lost.NextSequence()
	if err != nil {
		return err
	}
	aside, err := lost.CreateBucket(binary.BigEndian.AppendUint64(nil, n))
	if err != nil {
		return err
	}
	if err := tx.MoveBucket(bucketIndex, nil, aside); err != nil {
		return err
	}
	return s.rebuild(tx)
}
