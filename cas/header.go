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

// checkHeader looks at a bbolt file before bbolt does: it would write a new database over an
// empty file, and read beyond the end of one cut short. size is the length of the file.
func checkHeader(f io.ReaderAt, size int64) error {
	if size == 0 {
		return fmt.Errorf("the file is empty; it was cut short: %w", protocol.ErrStore)
	}
	var newest, need uint64
	valid, magic := false, false
	for _, at := range metaOffsets(f) {
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
		if h.Sum64() != binary.NativeEndian.Uint64(m[56:]) {
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

// metaOffsets is where the two meta pages are: the second one page behind the first, with the
// page size written in the first.
func metaOffsets(f io.ReaderAt) []int64 {
	var b [boltPageHeader + boltMetaSize]byte
	at := []int64{0}
	if _, err := f.ReadAt(b[:], 0); err == nil {
		if size := binary.NativeEndian.Uint32(b[boltPageHeader+8:]); size >= 1024 && size <= 1<<16 {
			return append(at, int64(size))
		}
	}
	return append(at, 4096, 16384, 65536)
}
