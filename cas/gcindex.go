package cas

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

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
