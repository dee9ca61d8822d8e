package cas

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/klauspost/compress/zstd"

	"wf/protocol"
)

// A stored pack is packBlob and the digest of its only block, with the stored pack of that in the
// file blobs/xx/digest; or segments, one after another:
//
//	uvarint(length of the rest) ‖ number of blocks (1) ‖ how it is held (1) ‖ body
//
//	packPlain  the body as it is
//	packZstd1  a zstd frame without its magic, made with dictionary 1
//
// A segment holds records, or it holds payloads, so that a reader of a journal need not unpack
// payloads; batches that are written in one transaction may share segments (gather.go). A commit adds
// segments to the newest pack while there is room: entries of bbolt cost 21 bytes, and pages of few
// entries stay half empty. Where there is none left the segments may be made one, which holds both,
// if that is shorter.
//
// The body is, for each block: uvarint(length·2 + 1 for dag-cbor, + 0 for raw); for dag-cbor
// the number of references and for each the distance from the end of the one before and the
// place of the block it names; then the bytes. A reference is the digest of an earlier block
// of the segment, left out of the bytes: it follows from that block. A record and the events
// that tell of it name each other, so a good part of their bytes goes away.
const (
	packPlain = 0
	packZstd1 = 1
	packBlob  = 2
)

// dictionary1 holds typical bodies. Its bytes are part of the store format: packs made with
// it cannot be read with another. dict_test.go made it from the shapes of the records.
//
//go:embed dict1.bin
var dictionary1 []byte

// compressMin is the shortest body to be compressed: laying out the dictionary anew for each
// one costs as much as storing some bytes more.
const compressMin = 64

const zstdMagic = "\x28\xb5\x2f\xfd"

// unpackMax is the length in bytes of the longest body of a segment, and so of the memory that one can ask for: the longest block,
// or many short ones, with what stands before each.
const unpackMax = BlockMax + 1<<20

// Made at first use: a program that opens no store does not pay for them.
var (
	zencoder = sync.OnceValue(func() *zstd.Encoder {
		return must(zstd.NewWriter(nil, zstd.WithEncoderDict(dictionary1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithAllLitEntropyCompression(true), // hex and base64 have no repeats, yet shrink
			zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(2), zstd.WithSingleSegment(true)))
	})
	zdecoder = sync.OnceValue(func() *zstd.Decoder {
		return must(zstd.NewReader(nil, zstd.WithDecoderDicts(dictionary1),
			zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(unpackMax)))
	})
)

// pack makes the stored form of blocks, in their order, compressed when that helps.
func pack(blocks []Block) []byte {
	var out []byte
	for us := toPack(blocks); len(us) > 0; {
		n := 1
		for n < len(us) && us[n].codec == us[0].codec {
			n++
		}
		out = appendSegment(out, us[:n])
		us = us[n:]
	}
	return out
}

// tightened makes one segment of those of a stored pack, its blocks in their places: what the
// blocks of several commits have in common is then stored once. A damaged pack stays as it is.
func tightened(stored []byte) []byte {
	us, err := unpack(stored)
	if err != nil {
		return stored
	}
	if out := appendSegment(nil, us); len(out) < len(stored) {
		return out
	}
	return stored
}

func appendSegment(out []byte, blocks []unpacked) []byte {
	buf := packBuffers.Get().(*packBuffer)
	defer buf.recycle()
	buf.body = packBody(buf.body[:0], blocks)
	held, seg := byte(packPlain), buf.body
	if len(buf.body) >= compressMin {
		buf.frame = zencoder().EncodeAll(buf.body, buf.frame[:0])
		if z := buf.frame[len(zstdMagic):]; len(z) < len(buf.body) {
			held, seg = packZstd1, z
		}
	}
	out = slices.Grow(out, len(seg)+8)
	out = binary.AppendUvarint(out, uint64(len(seg)+2))
	return append(append(out, byte(len(blocks)), held), seg...)
}

// packBuffer is what a segment is made in.
type packBuffer struct{ body, frame []byte }

var packBuffers = sync.Pool{New: func() any { return new(packBuffer) }}

// recycle gives a buffer back, unless it has grown large.
func (b *packBuffer) recycle() {
	if cap(b.body)+cap(b.frame) <= 1<<17 {
		packBuffers.Put(b)
	}
}

// segment is a part of a stored pack.
type segment struct {
	first, count int // places of its blocks
	held         byte
	body         []byte
}

// segments takes a stored pack apart without opening it.
func segments(stored []byte) ([]segment, error) {
	var out []segment
	first := 0
	for r := (reader{b: stored}); len(r.b) > 0; {
		s := r.take(r.uint())
		if r.bad || len(s) < 2 || first+int(s[0]) > packBlocks {
			return out, fmt.Errorf("pack of %d bytes: segment %d is cut short: %w", len(stored), len(out)+1, protocol.ErrCorrupt)
		}
		out = append(out, segment{first, int(s[0]), s[1], s[2:]})
		first += int(s[0])
	}
	return out, nil
}

// toPack are blocks of this store's form, as unpack will find them.
func toPack(blocks []Block) []unpacked {
	us := make([]unpacked, len(blocks))
	for i, b := range blocks {
		key := b.Link.CID().KeyString()
		us[i] = unpacked{codec: key[1], data: b.Data}
		copy(us[i].digest[:], key[4:])
	}
	return us
}

// packBody adds the body of a segment.
func packBody(body []byte, blocks []unpacked) []byte {
	for i := range blocks {
		b := &blocks[i]
		if b.codec != cid.DagCBOR {
			body = append(binary.AppendUvarint(body, uint64(len(b.data))<<1), b.data...)
			continue
		}
		body = binary.AppendUvarint(body, uint64(len(b.data))<<1|1)
		var few [8]reference
		refs := references(few[:0], b.data, blocks[:i])
		body = binary.AppendUvarint(body, uint64(len(refs)))
		end := 0
		for _, r := range refs {
			body = binary.AppendUvarint(body, uint64(r.at-end))
			body = append(body, byte(r.block))
			end = r.at + sha256.Size
		}
		end = 0
		for _, r := range refs {
			body = append(body, b.data[end:r.at]...)
			end = r.at + sha256.Size
		}
		body = append(body, b.data[end:]...)
	}
	return body
}

type reference struct{ at, block int }

// linkHead is what stands before the digest of every link to a block of the store, but for
// the codec byte: tag 42, 37 bytes, identity base, CIDv1.
var linkHead = []byte{0xd8, 0x2a, 0x58, 0x25, 0x00, 0x01}

// references adds the links in data to earlier blocks of the pack.
func references(refs []reference, data []byte, earlier []unpacked) []reference {
	if len(earlier) == 0 {
		return refs
	}
	for at := 0; ; {
		i := bytes.Index(data[at:], linkHead)
		digest := at + i + len(linkHead) + 3
		if i < 0 || digest+sha256.Size > len(data) {
			return refs
		}
		at += i + len(linkHead)
		want := [sha256.Size]byte(data[digest:])
		for n := range earlier {
			if earlier[n].digest == want {
				refs = append(refs, reference{digest, n})
				at = digest + sha256.Size
				break
			}
		}
	}
}

var errEmptyPack = fmt.Errorf("empty pack: %w", protocol.ErrCorrupt)

// unpacked is a block out of a pack; its hash has not been compared with anything.
type unpacked struct {
	codec  byte
	digest [sha256.Size]byte // of data
	data   []byte
}

// unpack reads a stored pack, all of it. The blocks are new memory and hashed, so a
// look-up compares digests; a damaged pack yields blocks of other names, or an error
// wrapping protocol.ErrCorrupt beside what is left: blocks without data hold the places of
// the lost ones.
func unpack(stored []byte) ([]unpacked, error) {
	segs, err := segments(stored)
	count := 0
	for _, s := range segs {
		count += s.count
	}
	if count == 0 && err == nil { // without segments, or with empty ones
		err = errEmptyPack
	}
	out := make([]unpacked, 0, count)
	for _, s := range segs {
		u, damage := s.open()
		err = errors.Join(err, damage)
		if damage != nil {
			u = make([]unpacked, s.count)
		}
		out = append(out, u...)
	}
	return out, err
}

// eachUnpacked gives f the blocks of a stored pack one after another, and ends at damage. A block is gone when f returns.
func eachUnpacked(stored []byte, f func(*unpacked)) error {
	segs, err := segments(stored)
	if len(segs) == 0 && err == nil {
		err = errEmptyPack
	}
	buf := packBuffers.Get().(*packBuffer)
	defer buf.recycle()
	for _, s := range segs {
		var us []unpacked
		if err == nil {
			buf.body, err = s.plain(buf.body[:0])
		}
		if err == nil {
			us, err = s.parse(buf.body)
		}
		for i := range us {
			f(&us[i])
		}
	}
	return err
}

// open unpacks a segment.
func (s segment) open() ([]unpacked, error) {
	body, err := s.plain(nil)
	if err != nil {
		return nil, err
	}
	return s.parse(body)
}

// parse takes the body of a segment apart; the blocks lie in it.
func (s segment) parse(body []byte) ([]unpacked, error) {
	out := make([]unpacked, 0, s.count)
	for r := (reader{b: body}); len(r.b) > 0; {
		head := r.uint()
		u := unpacked{codec: cid.Raw}
		if head&1 == 0 {
			u.data = r.take(head >> 1)
		} else {
			u.codec = cid.DagCBOR
			u.data = r.record(head>>1, out)
		}
		if r.bad || len(out) == s.count {
			return nil, fmt.Errorf("a segment of %d blocks is damaged in block %d: %w", s.count, len(out)+1, protocol.ErrCorrupt)
		}
		u.digest = sha256.Sum256(u.data)
		out = append(out, u)
	}
	if len(out) != s.count {
		return nil, fmt.Errorf("a segment holds %d blocks, not %d: %w", len(out), s.count, protocol.ErrCorrupt)
	}
	return out, nil
}

// record puts a record's references back.
func (r *reader) record(size uint64, earlier []unpacked) []byte {
	n := r.uint()
	if n == 0 {
		return r.take(size)
	}
	if n > size/sha256.Size || size > unpackMax {
		r.bad = true
		return nil
	}
	heads := *r
	for range n {
		r.uint()
		r.take(1)
	}
	data := make([]byte, 0, size)
	for range n {
		data = append(data, r.take(heads.uint())...)
		i := heads.take(1)
		if r.bad || heads.bad || int(i[0]) >= len(earlier) || uint64(len(data)+sha256.Size) > size {
			r.bad = true
			return nil
		}
		data = append(data, earlier[i[0]].digest[:]...)
	}
	return append(data, r.take(size-uint64(len(data)))...)
}

// plain adds the body of a segment to out.
func (s segment) plain(out []byte) ([]byte, error) {
	switch s.held {
	case packPlain:
		return append(out, s.body...), nil
	case packZstd1:
		buf := packBuffers.Get().(*packBuffer)
		defer buf.recycle()
		buf.frame = append(append(buf.frame[:0], zstdMagic...), s.body...)
		body, err := zdecoder().DecodeAll(buf.frame, out)
		if err != nil {
			return nil, fmt.Errorf("segment of %d bytes: %w: %w", len(s.body), protocol.ErrCorrupt, err)
		}
		return body, nil
	}
	return nil, fmt.Errorf("a segment is held in the unknown way %d: %w", s.held, protocol.ErrCorrupt)
}
