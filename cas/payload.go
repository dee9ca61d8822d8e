package cas

import (
	"fmt"
	"slices"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// Payload names bytes of any length: one raw block, or, above protocol.ChunkSize, a Chunks
// record after its parts; protocol.ReadPayload reads both. root is the last of blocks. The
// blocks share data. Whatever may be longer than a chunk is written by it.
func Payload(data []byte) (root protocol.Link, blocks []Block) {
	if len(data) <= protocol.ChunkSize {
		b := Raw(data)
		return b.Link, []Block{b}
	}
	c := protocol.Chunks{Kind: protocol.KindChunks, V: protocol.RecordVersion, Size: int64(len(data))}
	for part := range slices.Chunk(data, protocol.ChunkSize) {
		b := Raw(part)
		blocks = append(blocks, b)
		c.Parts = append(c.Parts, b.Link)
	}
	top := must(Marshal(c)) // whether it is longer than payloads are is for Admit to say
	return linkTo(cid.DagCBOR, top), append(blocks, Block{linkTo(cid.DagCBOR, top), top})
}

// Admit checks what a store is given: that a block is what its name says, is no longer than blocks are, and names no
// payload that no reader would take (protocol.PayloadMax). The errors wrap protocol.ErrCorrupt, protocol.ErrInvalidBlock and
// protocol.ErrTooLarge.
func Admit(b Block) error {
	if err := Check(b.Link, b.Data); err != nil {
		return err
	}
	if len(b.Data) > BlockMax {
		return fmt.Errorf("block %s has %d bytes, a block has at most %d: %w", b.Link, len(b.Data), BlockMax, protocol.ErrInvalidBlock)
	}
	if !protocol.IsChunks(b.Data) {
		return nil
	}
	var c protocol.Chunks
	if err := Decode(b.Data, &c); err != nil {
		return fmt.Errorf("block %s: %w", b.Link, err)
	}
	if err := protocol.CheckPayload("payload "+b.Link.String(), int(c.Size)); err != nil {
		return err
	}
	if _, err := protocol.DecodeChunks(b.Data); err != nil {
		return fmt.Errorf("block %s: %w", b.Link, err)
	}
	return nil
}
