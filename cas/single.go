package cas

import "wf/protocol"

// PackBlock is the stored form of a block on its own, compressed where that helps, for stores that have no packs.
func PackBlock(b Block) []byte { return pack([]Block{b}) }

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
