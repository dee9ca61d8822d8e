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
// written to index/blocks, several to a page. A look-up of a block looks at both.
//
// late is entries one behind the other: digest[:8] ‖ place.
const (
	lateSize   = 8 + placeSize
	lateMax    = 7 << 10  // bytes of late entries that a commit leaves: with the rest of meta two pages
	lateCrowd  = 56 << 10 // the most that a commit of many blocks leaves
	lateRanges = 32       // ranges of keys; pages that are written anew together leave as many free
)

// lateRoom is how many bytes of late entries a commit leaves that had some before, and has some
// with those it added. All of them are written with each commit, and a page of index/blocks for
// few: so the more a commit adds, the more it leaves. Small commits behind a large one bring it
// down step by step.
func lateRoom(before, now int) int {
	return max(lateMax, min((now-before)*8, lateCrowd), before/8*7)
}

// keepLate writes the late entries of a transaction that began with so many bytes of them, and
// those that are more than most to the index.
func (lk *lookup) keepLate(before, most int) error {
	if len(lk.late) == before && before <= most {
		return nil
	}
	left, err := fold(lk.index, lk.late, most)
	if err != nil {
		return err
	}
	lk.late, lk.faint = left, nil
	return lk.meta.Put(keyLate, left)
}

// sketch is a set of keys that may hold more than were added: most looks for a block that is not
// late end with one bit.
type sketch [1 << 10]uint64

func sketchOf(late []byte) *sketch {
	s := new(sketch)
	for i := 0; i+lateSize <= len(late); i += lateSize {
		s.add(late[i:])
	}
	return s
}

func (s *sketch) add(entry []byte) {
	h := binary.LittleEndian.Uint16(entry)
	s[h>>6] |= 1 << (h & 63)
}

func (s *sketch) has(key []byte) bool {
	h := binary.LittleEndian.Uint16(key)
	return s[h>>6]>>(h&63)&1 != 0
}

// latePlaces adds the places of the blocks with digests that begin with key.
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
func noteLate[D string | []byte](late []byte, digest D, key []byte, index int) []byte {
	return append(append(append(late, digest[:8]...), key...), byte(index))
}

// dropLate takes the entries of a pack out of those that are to be indexed.
func (lk *lookup) dropLate(pack []byte) error {
	left := make([]byte, 0, len(lk.late))
	for e := range slices.Chunk(lk.late, lateSize) {
		if !bytes.Equal(e[8:8+packKeySize], pack) {
			left = append(left, e...)
		}
	}
	if len(left) == len(lk.late) {
		return nil
	}
	lk.late = left
	return lk.meta.Put(keyLate, left)
}

// fold writes entries of late to index until at most so many bytes of them are left, and returns
// these. late is not changed.
func fold(index *bolt.Bucket, late []byte, most int) (left []byte, err error) {
	if len(late) <= most {
		return late, nil
	}
	rangeOf := func(i int) int { return int(late[i]) * lateRanges >> 8 }
	var sizes, order [lateRanges]int
	for i := 0; i+lateSize <= len(late); i += lateSize {
		sizes[rangeOf(i)] += lateSize
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[:], func(a, b int) int { return sizes[a] - sizes[b] })
	var stays [lateRanges]bool // the emptier ones
	room := most
	for _, r := range order {
		if sizes[r] > room {
			break
		}
		room -= sizes[r]
		stays[r] = true
	}
	left, due := make([]byte, 0, most-room), make([][]byte, 0, (len(late)-(most-room))/lateSize)
	for i := 0; i+lateSize <= len(late); i += lateSize {
		if e := late[i : i+lateSize : i+lateSize]; stays[rangeOf(i)] {
			left = append(left, e...)
		} else {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, bytes.Compare)
	at := index.Cursor()
	for _, e := range due {
		if err := addPlace(index, at, e[:8], e[8:]); err != nil {
			return nil, err
		}
	}
	return left, nil
}
