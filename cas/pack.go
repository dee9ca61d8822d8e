package cas

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/klauspost/compress/zstd"

	"wf/protocol"
)

// A stored pack is one byte that tells how it is held, then:
//
//	packPlain  the body
//	packZstd1  the body as a zstd frame without its magic, made with dictionary 1
//	packBlob   the digest of its only block, whose stored pack is the file blobs/xx/digest
//
// The body is, for each block: uvarint(length·2 + 1 for dag-cbor, + 0 for raw); for dag-cbor
// the number of references and for each the distance from the end of the one before and the
// place of the block it names; then the bytes. A reference is the digest of an earlier block
// of the pack, left out of the bytes: it follows from that block. What a commit concludes and
// the events that say so name each other, so a third of their bytes goes away.
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

const zstdMagic = "\x28\xb5\x2f\xfd"

// unpackMax bounds the memory one damaged pack can ask for.
const unpackMax = 256 << 20

// Made at first use: a program that opens no store does not pay for them.
var (
	zencoder = sync.OnceValue(func() *zstd.Encoder {
		return must(zstd.NewWriter(nil, zstd.WithEncoderDict(dictionary1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(2), zstd.WithSingleSegment(true)))
	})
	zdecoder = sync.OnceValue(func() *zstd.Decoder {
		return must(zstd.NewReader(nil, zstd.WithDecoderDicts(dictionary1),
			zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(unpackMax)))
	})
)

// pack makes the stored form of blocks, compressed when that helps.
func pack(blocks []Block) []byte {
	body := packBody(blocks)
	out := make([]byte, 1, len(body)+len(body)/8+64)
	out = zencoder().EncodeAll(body, out)
	if n := len(out) - len(zstdMagic); n < len(body)+1 {
		copy(out[1:], out[1+len(zstdMagic):])
		out[0] = packZstd1
		return out[:n]
	}
	out[0] = packPlain
	return append(out[:1], body...)
}

func packBody(blocks []Block) []byte {
	size := 0
	for i := range blocks {
		size += len(blocks[i].Data) + 16
	}
	body := make([]byte, 0, size)
	for i, b := range blocks {
		if b.Link.CID().Type() != cid.DagCBOR {
			body = append(binary.AppendUvarint(body, uint64(len(b.Data))<<1), b.Data...)
			continue
		}
		body = binary.AppendUvarint(body, uint64(len(b.Data))<<1|1)
		refs := references(b.Data, blocks[:i])
		body = binary.AppendUvarint(body, uint64(len(refs)))
		end := 0
		for _, r := range refs {
			body = binary.AppendUvarint(body, uint64(r.at-end))
			body = append(body, byte(r.block))
			end = r.at + sha256.Size
		}
		end = 0
		for _, r := range refs {
			body = append(body, b.Data[end:r.at]...)
			end = r.at + sha256.Size
		}
		body = append(body, b.Data[end:]...)
	}
	return body
}

type reference struct{ at, block int }

// linkHead is what stands before the digest of every link to a block of the store, but for
// the codec byte: tag 42, 37 bytes, identity base, CIDv1.
var linkHead = []byte{0xd8, 0x2a, 0x58, 0x25, 0x00, 0x01}

// references finds the links in data to earlier blocks of the pack.
func references(data []byte, earlier []Block) []reference {
	if len(earlier) == 0 {
		return nil
	}
	var refs []reference
	for at := 0; ; {
		i := bytes.Index(data[at:], linkHead)
		digest := at + i + len(linkHead) + 3
		if i < 0 || digest+sha256.Size > len(data) {
			return refs
		}
		at += i + len(linkHead)
		for n := range earlier {
			if earlier[n].Link.CID().KeyString()[4:] == string(data[digest:digest+sha256.Size]) {
				refs = append(refs, reference{digest, n})
				at = digest + sha256.Size
				break
			}
		}
	}
}

// unpacked is a block out of a pack; its hash has not been compared with anything.
type unpacked struct {
	codec  byte
	digest [sha256.Size]byte // of data
	data   []byte
}

// unpack reads a stored pack, all of it. The blocks are new memory and hashed, so whoever
// looks for one compares digests; a damaged pack is an error wrapping protocol.ErrCorrupt or
// yields blocks of other names.
func unpack(stored []byte) ([]unpacked, error) {
	body, err := unpackBody(stored)
	if err != nil {
		return nil, err
	}
	var out []unpacked
	for r := (reader{b: body}); len(r.b) > 0; {
		head := r.uint()
		u := unpacked{codec: cid.Raw}
		if head&1 == 0 {
			u.data = r.take(head >> 1)
		} else {
			u.codec = cid.DagCBOR
			u.data = r.record(head>>1, out)
		}
		if r.bad || len(out) == packBlocks {
			return nil, fmt.Errorf("pack of %d bytes ends in block %d: %w", len(stored), len(out), protocol.ErrCorrupt)
		}
		u.digest = sha256.Sum256(u.data)
		out = append(out, u)
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

func unpackBody(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return nil, fmt.Errorf("empty pack: %w", protocol.ErrCorrupt)
	}
	switch stored[0] {
	case packPlain:
		return bytes.Clone(stored[1:]), nil
	case packZstd1:
		frame := make([]byte, 0, len(stored)+3)
		frame = append(append(frame, zstdMagic...), stored[1:]...)
		body, err := zdecoder().DecodeAll(frame, nil)
		if err != nil {
			return nil, fmt.Errorf("pack of %d bytes: %w: %w", len(stored), protocol.ErrCorrupt, err)
		}
		return body, nil
	}
	return nil, fmt.Errorf("pack is held in the unknown way %d: %w", stored[0], protocol.ErrCorrupt)
}
