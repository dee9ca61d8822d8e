package cas

import (
	"context"
	"fmt"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// Payload names bytes of any length: one raw block, or, above protocol.ChunkSize, a Chunks
// record after its parts. root is the last of blocks. The blocks share data.
func Payload(data []byte) (root protocol.Link, blocks []Block) {
	if len(data) <= protocol.ChunkSize {
		b := Raw(data)
		return b.Link, []Block{b}
	}
	c := protocol.Chunks{Kind: protocol.KindChunks, V: protocol.RecordVersion, Size: int64(len(data))}
	for rest := data; len(rest) > 0; {
		n := min(len(rest), protocol.ChunkSize)
		b := Raw(rest[:n:n])
		blocks = append(blocks, b)
		c.Parts = append(c.Parts, b.Link)
		rest = rest[n:]
	}
	top, err := Encode(c)
	if err != nil {
		panic("cas: a Chunks record does not encode: " + err.Error())
	}
	return top.Link, append(blocks, top)
}

// ReadPayload reads what Payload wrote, whole or in chunks. A missing block is an error
// wrapping protocol.ErrNotFound; a damaged one, or chunks whose sizes do not add up, an error
// wrapping protocol.ErrCorrupt.
func ReadPayload(ctx context.Context, from protocol.Blocks, l protocol.Link) ([]byte, error) {
	data, err := from.Block(ctx, l)
	if err != nil || l.CID().Type() != cid.DagCBOR {
		return data, err
	}
	var c protocol.Chunks
	if err := Decode(data, &c); err != nil {
		return nil, fmt.Errorf("payload %s: %w", l, err)
	}
	if c.Kind != protocol.KindChunks {
		return nil, fmt.Errorf("payload %s: a %q record where a payload should be: %w", l, c.Kind, protocol.ErrInvalidBlock)
	}
	if c.Size < 0 || c.Size > int64(len(c.Parts))*protocol.ChunkSize {
		return nil, fmt.Errorf("payload %s: %d bytes cannot be in %d chunks: %w", l, c.Size, len(c.Parts), protocol.ErrCorrupt)
	}
	out := make([]byte, 0, c.Size)
	for i, part := range c.Parts {
		b, err := from.Block(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("payload %s, chunk %d of %d: %w", l, i+1, len(c.Parts), err)
		}
		if int64(len(out)+len(b)) > c.Size {
			return nil, fmt.Errorf("payload %s: its chunks hold more than %d bytes: %w", l, c.Size, protocol.ErrCorrupt)
		}
		out = append(out, b...)
	}
	if int64(len(out)) != c.Size {
		return nil, fmt.Errorf("payload %s: its chunks hold %d of %d bytes: %w", l, len(out), c.Size, protocol.ErrCorrupt)
	}
	return out, nil
}
