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

// OpenPayload reads the block that a link names, but not the parts of chunks: the Size of a
// payload is known without them. read fetches a block and checks its hash; its errors are
// returned. A record that is no Chunks is an error wrapping ErrInvalidBlock, chunks that cannot
// hold their size one wrapping ErrCorrupt.
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
	var c Chunks
	if err := recordIn.Unmarshal(data, &c); err != nil {
		return Payload{}, fmt.Errorf("payload %s: %w: %w", l, ErrInvalidBlock, err)
	}
	if c.Kind != KindChunks {
		return Payload{}, fmt.Errorf("payload %s: a %q record where a payload should be: %w", l, c.Kind, ErrInvalidBlock)
	}
	if c.Size < 0 || c.Size > int64(len(c.Parts))*ChunkSize {
		return Payload{}, fmt.Errorf("payload %s: %d bytes cannot be in %d chunks: %w", l, c.Size, len(c.Parts), ErrCorrupt)
	}
	for i, p := range c.Parts {
		if !p.Defined() || p.CID().Type() != rawCodec {
			return Payload{}, fmt.Errorf("payload %s: chunk %d is no raw block: %w", l, i+1, ErrCorrupt)
		}
	}
	return Payload{Size: c.Size, link: l, parts: c.Parts}, nil
}

// Bytes reads all of the payload. Chunks with sizes that do not add up are an error wrapping
// ErrCorrupt.
func (p Payload) Bytes(read func(Link) ([]byte, error)) ([]byte, error) {
	if p.parts == nil {
		return p.whole, nil
	}
	out := make([]byte, 0, p.Size)
	for i, part := range p.parts {
		b, err := read(part)
		if err != nil {
			return nil, fmt.Errorf("payload %s, chunk %d of %d: %w", p.link, i+1, len(p.parts), err)
		}
		if int64(len(out)+len(b)) > p.Size {
			return nil, fmt.Errorf("payload %s: its chunks hold more than %d bytes: %w", p.link, p.Size, ErrCorrupt)
		}
		out = append(out, b...)
	}
	if int64(len(out)) != p.Size {
		return nil, fmt.Errorf("payload %s: its chunks hold %d of %d bytes: %w", p.link, len(out), p.Size, ErrCorrupt)
	}
	return out, nil
}

// Begin reads the beginning of the payload: so many bytes at least, where it has them.
func (p Payload) Begin(read func(Link) ([]byte, error), least int) ([]byte, error) {
	out := p.whole
	for i := 0; i < len(p.parts) && len(out) < least; i++ {
		b, err := read(p.parts[i])
		if err != nil {
			return nil, fmt.Errorf("payload %s, chunk %d of %d: %w", p.link, i+1, len(p.parts), err)
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
