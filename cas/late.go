package cas

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Digests are random: an entry of index/blocks is a page of its own in nearly every commit,
// while a pack shares one with the packs before it. So entries are gathered in one value,
// "late" in meta, and written to index/blocks in the order of its keys when there are many
// for each page. Who looks for a block looks at both.
//
// late is entries one behind the other: digest[:8] ‖ place.
const (
	lateSize = 8 + placeSize
	lateMax  = 12 << 10 // bytes of late entries that a commit leaves
)

// latePlaces adds the places of the blocks whose digests begin with key.
func latePlaces(out []place, late []byte, key string) []place {
	for ; len(late) >= lateSize; late = late[lateSize:] {
		if string(late[:8]) == key {
			out = append(out, places(late[8:lateSize])...)
		}
	}
	return out
}

// noteLate adds an entry to those that are to be indexed.
func noteLate(late []byte, digest string, key []byte, index int) []byte {
	return append(append(append(late, digest[:8]...), key...), byte(index))
}

// fold writes the late entries to index/blocks when there are more than most bytes of them.
func fold(tx *bolt.Tx, most int) error {
	meta, index := tx.Bucket(bucketMeta), sub(tx, indexBlocks)
	late := meta.Get(keyLate)
	if len(late) <= most {
		return nil
	}
	entries := make([][]byte, 0, len(late)/lateSize)
	for e := range slices.Chunk(bytes.Clone(late), lateSize) {
		if len(e) == lateSize {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, bytes.Compare)
	for _, e := range entries {
		if err := addPlace(index, e[:8], e[8:]); err != nil {
			return err
		}
	}
	return meta.Put(keyLate, []byte{})
}
