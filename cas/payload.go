package cas

import (
	"slices"

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
	top := must(Encode(c))
	return top.Link, append(blocks, top)
}
