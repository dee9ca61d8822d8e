package cas

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"

	"wf/protocol"
)

const (
	boltMagic      = 0xED0CDAED
	boltPageHeader = 16
	boltMetaSize   = 64
)

// metaOffsets is where the two meta pages may be: the first at the beginning, the second one page
// behind it. The size of a page stands in both, and either may be damaged.
var metaOffsets = []int64{0, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16}

// checkHeader looks at a bbolt file before bbolt does: it would write a new database over an
// empty file, and read beyond the end of one cut short. size is the length of the file.
func checkHeader(f io.ReaderAt, size int64) error {
	if size == 0 {
		return fmt.Errorf("the file is empty; it was cut short: %w", protocol.ErrStore)
	}
	var newest, need uint64
	valid, magic := false, false
	for _, at := range metaOffsets {
		var b [boltPageHeader + boltMetaSize]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			continue
		}
		m := b[boltPageHeader:]
		if binary.NativeEndian.Uint32(m) != boltMagic {
			continue
		}
		magic = true
		h := fnv.New64a()
		_, _ = h.Write(m[:56]) // a hash takes everything
		if h.Sum64() != binary.NativeEndian.Uint64(m[56:]) || at > 0 && int64(binary.NativeEndian.Uint32(m[8:])) != at {
			continue
		}
		if tx := binary.NativeEndian.Uint64(m[48:]); !valid || tx > newest {
			newest, valid = tx, true
			need = binary.NativeEndian.Uint64(m[40:]) * uint64(binary.NativeEndian.Uint32(m[8:]))
		}
	}
	switch {
	case !magic:
		return fmt.Errorf("the file is no wf store: %w", protocol.ErrStore)
	case !valid:
		return fmt.Errorf("both of its meta pages are damaged: %w", protocol.ErrStore)
	case need > uint64(size):
		return fmt.Errorf("the file was cut short: %d of %d bytes are left: %w", size, need, protocol.ErrStore)
	}
	return nil
}
