package protocol

import (
	"context"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"wf/protocol/dagcbor"
)

// rawCodec is the codec of payload bytes in a CID: https://github.com/multiformats/multicodec.
const rawCodec = 0x55

// A Payload is what a link of a payload names: bytes in one raw block, or in the parts of a
// Chunks record. It is read by ReadPayload, or, where its size decides, by OpenPayload; there
// is no other reader.
type Payload struct {
	Size  int64 // bytes
	link  Link
	whole []byte // of a raw block
	parts []Link
}

// PayloadMax is the length in bytes of the longest payload. What is longer is refused where it would be
// stored (see CheckPayload), and where it is read, before anything is made ready for it: a small record can
// name one chunk any number of times.
const PayloadMax = 64 << 20

// chunksMax is the length in bytes of the longest Chunks record: 41 for each part, and room for keys that a
// later version may add.
const chunksMax = PayloadMax/ChunkSize*41 + 64<<10

// CheckPayload reports a payload of so many bytes that is too long to be stored, as an error wrapping ErrTooLarge.
func CheckPayload(what string, size int) error {
	if size <= PayloadMax {
		return nil
	}
	return ErrTooLarge.With("write it to a file, and hand on its path or keep it as an artifact", "%s: %d bytes, a run holds at most %d in one text or value", what, size, PayloadMax)
}

// DecodeChunks reads a Chunks record. Its parts are raw blocks of ChunkSize bytes, the last one shorter: as many as its
// size wants, which is over ChunkSize and at most PayloadMax. Another record is an error wrapping ErrInvalidBlock, chunks
// that break these bounds one wrapping ErrCorrupt.
func DecodeChunks(data []byte) (Chunks, error) {
	var c Chunks
	if len(data) > chunksMax {
		return c, fmt.Errorf("a record of %d bytes, chunks of the longest payload take %d: %w", len(data), chunksMax, ErrInvalidBlock)
	}
	if err := recordIn.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%w: %w", ErrInvalidBlock, err)
	}
	if c.Kind != KindChunks {
		return c, fmt.Errorf("a %q record where a payload should be: %w", c.Kind, ErrInvalidBlock)
	}
	switch parts := int64(len(c.Parts)); {
	case c.Size > PayloadMax || parts > PayloadMax/ChunkSize:
		return c, fmt.Errorf("it says that it has %d bytes, in %d chunks; a payload has at most %d, in %d: %w", c.Size, parts, PayloadMax, PayloadMax/ChunkSize, ErrCorrupt)
	case c.Size <= ChunkSize || (c.Size+ChunkSize-1)/ChunkSize != parts:
		return c, fmt.Errorf("%d bytes cannot be in %d chunks of %d: %w", c.Size, parts, ChunkSize, ErrCorrupt)
	}
	for i, p := range c.Parts {
		if !p.Defined() || p.CID().Type() != rawCodec {
			return c, fmt.Errorf("chunk %d is no raw block: %w", i+1, ErrCorrupt)
		}
	}
	return c, nil
}

// IsChunks reports whether a block begins as a Chunks record does.
func IsChunks(data []byte) bool {
	return len(data) > len(chunksHead) && string(data[1:1+len(chunksHead)]) == chunksHead
}

// chunksHead is how a Chunks record begins, behind the number of its keys.
const chunksHead = "\x61v\x01\x64kind\x66chunks"

// ChunkLen is the length in bytes of part i of a payload of so many bytes.
func ChunkLen(size int64, i int) int64 { return min(ChunkSize, size-int64(i)*ChunkSize) }

// OpenPayload reads the block that a link names, but not the parts of chunks: the Size of a
// payload is known without them, and is PayloadMax at most. read fetches a block and checks its hash; its
// errors are returned. A record that is no Chunks is an error wrapping ErrInvalidBlock, chunks as no payload
// has them one wrapping ErrCorrupt.
func OpenPayload(read func(Link) ([]byte, error), l Link) (Payload, error) {
	if !l.Defined() {
		return Payload{}, fmt.Errorf("payload: no CID: %w", ErrInvalidBlock)
	}
	data, err := read(l)
	if err != nil {
		return Payload{}, err
	}
	if l.CID().Type() == rawCodec {
		return Payload{Size: int64(len(data)), link: l, whole: data}, nil
	}
	c, err := DecodeChunks(data)
	if err != nil {
		return Payload{}, fmt.Errorf("payload %s: %w", l, err)
	}
	return Payload{Size: c.Size, link: l, parts: c.Parts}, nil
}

// Bytes reads all of the payload. Chunks of other lengths than their record says are an error wrapping
// ErrCorrupt.
func (p Payload) Bytes(read func(Link) ([]byte, error)) ([]byte, error) {
	return p.Begin(read, int(p.Size))
}

// Begin reads the beginning of the payload: so many bytes at least, where it has them.
func (p Payload) Begin(read func(Link) ([]byte, error), least int) ([]byte, error) {
	if p.parts == nil {
		return p.whole, nil
	}
	var out []byte
	for i := 0; i < len(p.parts) && len(out) < least; i++ {
		b, err := read(p.parts[i])
		if err != nil {
			return nil, fmt.Errorf("payload %s, chunk %d of %d: %w", p.link, i+1, len(p.parts), err)
		}
		if want := ChunkLen(p.Size, i); int64(len(b)) != want {
			return nil, fmt.Errorf("payload %s, chunk %d of %d: block %s has %d bytes, and should have %d: %w", p.link, i+1, len(p.parts), p.parts[i], len(b), want, ErrCorrupt)
		}
		if out == nil { // the first chunk is as long as it says: a record that lies costs no memory
			out = make([]byte, 0, min(p.Size, int64(least)+ChunkSize))
		}
		out = append(out, b...)
	}
	return out, nil
}

// ReadPayload reads a payload, whole or in chunks. A missing block is an error wrapping
// ErrNotFound, a damaged one an error wrapping ErrCorrupt; further errors are those of
// OpenPayload and Bytes.
func ReadPayload(ctx context.Context, from Blocks, l Link) ([]byte, error) {
	return PayloadBytes(func(l Link) ([]byte, error) { return from.Block(ctx, l) }, l)
}

// PayloadBytes is ReadPayload for a function that fetches blocks.
func PayloadBytes(read func(Link) ([]byte, error), l Link) ([]byte, error) {
	p, err := OpenPayload(read, l)
	if err != nil {
		return nil, err
	}
	return p.Bytes(read)
}

// recordIn reads a stored record: unknown keys are ignored.
var recordIn = mustMode(cbor.DecOptions{
	DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
	FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, MaxArrayElements: 1 << 24,
	MaxNestedLevels: dagcbor.MaxDepth + 1, // a link in the deepest list is one level more
}.DecMode())
