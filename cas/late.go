package cas

import (
	"bytes"
	"encoding/binary"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Digests are random: an entry of index/blocks is a page of its own in nearly every commit,
// while a pack shares one with the packs before it. So entries are gathered in one value,
// "late" in meta. When there are many, those of the range of keys that has the most are
// written to index/blocks, several to a page. Who looks for a block looks at both.
//
// late is entries one behind the other: digest[:8] ‖ place.
const (
	lateSize   = 8 + placeSize
	lateMax    = 7 << 10 // bytes of late entries that a commit leaves: with the rest of meta two pages
	lateRanges = 32      // ranges of keys; pages that are written anew together leave as many free
)

// latePlaces adds the places of the blocks whose digests begin with key.
func latePlaces(out []place, late []byte, key string) []place {
	want := binary.LittleEndian.Uint64([]byte(key)) // for each look-up: one comparison an entry
	for i := 0; i+lateSize <= len(late); i += lateSize {
		if binary.LittleEndian.Uint64(late[i:]) == want {
			out = append(out, places(late[i+8:i+lateSize])...)
		}
	}
	return out
}

// noteLate adds an entry to those that are to be indexed.
func noteLate(late []byte, digest string, key []byte, index int) []byte {
	return append(append(append(late, digest[:8]...), key...), byte(index))
}

// fold writes late entries to index/blocks until at most so many bytes of them are left.
func fold(tx *bolt.Tx, most int) error {
	meta := tx.Bucket(bucketMeta)
	late := meta.Get(keyLate)
	if len(late) <= most {
		return nil
	}
	var ranges [lateRanges][][]byte
	for ; len(late) >= lateSize; late = late[lateSize:] {
		r := &ranges[int(late[0])*lateRanges>>8]
		*r = append(*r, late[:lateSize])
	}
	slices.SortStableFunc(ranges[:], func(a, b [][]byte) int { return len(a) - len(b) })
	left := make([]byte, 0, most)
	for _, entries := range ranges {
		if len(left)+len(entries)*lateSize <= most {
			left = append(left, bytes.Join(entries, nil)...)
			continue
		}
		most = 0 // the fuller ones go
		slices.SortFunc(entries, bytes.Compare)
		for _, e := range entries {
			if err := addPlace(sub(tx, indexBlocks), e[:8], e[8:]); err != nil {
				return err
			}
		}
	}
	return meta.Put(keyLate, left)
}
