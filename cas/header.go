package cas

import (
	"fmt"
	"io"

	"wf/protocol"
)

// metaOffsets is where the two meta pages may be: the first at the beginning, the second one page
// behind it. Both hold the size of a page, and either may be damaged.
var metaOffsets = []int64{0, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16}

// checkHeader looks at a bbolt file before bbolt does: it would write a new database over an
// empty file, and read beyond the end of one cut short. size is the length of the file.
func checkHeader(f io.ReaderAt, size int64) error {
	if size == 0 {
		return fmt.Errorf("the file is empty; it was cut short: %w", protocol.ErrStore)
	}
	newest, torn, magic := newestMeta(f)
	need := newest.pages * uint64(newest.pageSize)
	switch {
	case !magic:
		return fmt.Errorf("the file is no wf store: %w", protocol.ErrStore)
	case len(torn) == 2:
		return fmt.Errorf("both of its meta pages are damaged: %w", protocol.ErrStore)
	case need > uint64(size):
		return fmt.Errorf("the file was cut short: %d of %d bytes are left: %w", size, need, protocol.ErrStore)
	}
	return nil
}
