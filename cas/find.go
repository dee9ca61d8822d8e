package cas

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/binary"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// FindMin is how many characters of a CID Find wants.
const FindMin = 6

// Find lists the stored blocks with a CID that goes on with part after its first 7 characters,
// bafyrei or bafkrei, which all CIDs of a codec share; sorted. part has at least FindMin
// characters, or nothing is found.
func (s *Store) Find(ctx context.Context, part string) ([]protocol.Link, error) {
	low, high, ok := digestRange(part)
	if !ok {
		return nil, nil
	}
	var out []protocol.Link
	err := s.view(ctx, func(tx *bolt.Tx) error {
		out = nil
		lk := s.newLookup(tx)
		for _, p := range lk.between(low, high) {
			blocks, err := s.unpack(lk.packs.Get(p.pack[:]))
			if err != nil || int(p.index) >= len(blocks) {
				continue // damaged: verify tells of it, and its name is not known for sure
			}
			u := blocks[p.index]
			if l := linkOf(u.codec, u.digest[:]); strings.HasPrefix(l.String()[7:], part) {
				out = append(out, l)
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b protocol.Link) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out), err
}

// digestRange are the first 8 bytes of the lowest and the highest digest of a CID that
// goes on with part. The 7 characters before it hold 30 of the 32 bits in front of the digest.
func digestRange(part string) (low, high []byte, ok bool) {
	if len(part) < FindMin || len(part) > 52 {
		return nil, nil, false
	}
	// 16 characters are 80 bits: two of the header, 64 of the index key, and more.
	fill := func(with string) ([]byte, bool) {
		s := (part + strings.Repeat(with, 16))[:16]
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(s))
		if err != nil || b[0]>>6 != 0 {
			return nil, false
		}
		key := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(b)<<2|uint64(b[8]>>6))
		return key, true
	}
	if low, ok = fill("a"); !ok {
		return nil, nil, false
	}
	high, ok = fill("7")
	return low, high, ok
}

// A FindRange is the lowest and the highest CID, as bytes, of those of a codec that Find looks at.
type FindRange struct{ Low, High []byte }

// FindRanges are those of the blocks that Find(part) lists, and of few others; none where part is not enough.
func FindRanges(part string) (out []FindRange) {
	low, high, ok := digestRange(part)
	if !ok {
		return nil
	}
	fill := func(codec byte, digest []byte, with byte) []byte {
		l := linkOf(codec, append(bytes.Clone(digest), bytes.Repeat([]byte{with}, 32-len(digest))...))
		return l.Bytes()
	}
	for _, codec := range []byte{0x55, 0x71} {
		out = append(out, FindRange{fill(codec, low, 0), fill(codec, high, 0xff)})
	}
	return out
}

// between lists the places of the blocks with digests that begin with low … high.
func (lk *lookup) between(low, high []byte) []place {
	var out []place
	within := func(key []byte) bool { return bytes.Compare(key, low) >= 0 && bytes.Compare(key, high) <= 0 }
	if !lk.indexed() {
		for key, v := range lk.s.ghost {
			if within([]byte(key)) {
				out = append(out, places(v)...)
			}
		}
		return out
	}
	c := lk.index.Cursor()
	for k, v := c.Seek(low); k != nil && bytes.Compare(k, high) <= 0; k, v = c.Next() {
		out = append(out, places(v)...)
	}
	for late := lk.late; len(late) >= lateSize; late = late[lateSize:] {
		if within(late[:8]) {
			out = append(out, places(late[8:lateSize])...)
		}
	}
	return out
}
