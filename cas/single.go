package cas

import (
	"encoding/binary"
	"fmt"

	"github.com/ipfs/go-cid"
	"github.com/klauspost/compress/zstd"

	"wf/protocol"
)

// PackBlock is the stored form of a block on its own, compressed where that helps, for stores that have no packs.
func PackBlock(b Block) []byte { return pack([]Block{b}) }

// PackBlocks is the stored form of a few blocks together, in their order: records that name each other take less than each on its own.
func PackBlocks(blocks []Block) []byte { return pack(blocks) }

// UnpackBlocks reads what PackBlocks made. The links are the hashes of the bytes; damage is an error wrapping protocol.ErrCorrupt, or blocks of other
// names.
func UnpackBlocks(stored []byte) ([]Block, error) {
	us, err := unpack(stored)
	if err != nil {
		return nil, err
	}
	out := make([]Block, len(us))
	for i, u := range us {
		out[i] = Block{linkOf(u.codec, u.digest[:]), u.data}
	}
	return out, nil
}

// UnpackBlock reads what PackBlock made. Bytes that are not the block that l names are an error wrapping
// protocol.ErrCorrupt.
func UnpackBlock(l protocol.Link, stored []byte) ([]byte, error) {
	us, err := unpack(stored)
	if err != nil {
		return nil, err
	}
	if have := linkOf(us[0].codec, us[0].digest[:]); len(us) != 1 || have != l {
		return nil, &Mismatch{l, have}
	}
	return us[0].data, nil
}

// PackedHead is how many bytes of its stored form PackedLen wants.
const PackedHead = 32

// PackedLen is the length of the block l by the first PackedHead bytes of what PackBlock made of it. Its bytes are not
// looked at, so this is what the stored form says of them, and no more.
func PackedLen(l protocol.Link, head []byte) (int64, error) {
	r := reader{b: head}
	r.uint()
	about := r.take(2)
	bad := fmt.Errorf("block %s: its stored form %x is none of a single block: %w", l, head, protocol.ErrCorrupt)
	if r.bad || about[0] != 1 {
		return 0, bad
	}
	switch about[1] {
	case packPlain:
		if n := r.uint(); !r.bad {
			return int64(n >> 1), nil
		}
	case packZstd1:
		var h zstd.Header
		if err := h.Decode(append([]byte(zstdMagic), r.b...)); err != nil || !h.HasFCS || h.FrameContentSize > unpackMax {
			return 0, bad
		}
		before := 0 // the bytes of the body in front of those of the block, but for its length
		if l.CID().Type() == cid.DagCBOR {
			before = 1 // it refers to no earlier block
		}
		body := int(h.FrameContentSize) - before
		for of := 1; of <= binary.MaxVarintLen64; of++ {
			if n := body - of; n >= 0 && len(binary.AppendUvarint(nil, uint64(n)<<1)) == of {
				return int64(n), nil
			}
		}
	}
	return 0, bad
}

// LinksIn are the links of a block to blocks that a store can hold, in their order. One that is not strict DAG-CBOR is an error.
func LinksIn(l protocol.Link, data []byte) ([]protocol.Link, error) {
	n, _ := nameOf(l)
	refs, err := linksIn(n.codec, data)
	out := make([]protocol.Link, len(refs))
	for i, r := range refs {
		out[i] = r.to.link()
	}
	return out, err
}
