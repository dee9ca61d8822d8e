//go:build !unix

package embed

import (
	"io"
	"os"
)

// ownFile makes no promise here.
const ownFile = 0

// mapFile reads the first n bytes of a file.
func mapFile(f *os.File, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, int64(n)), b)
	return b, err
}

func unmap([]byte) error { return nil }

// lockFile makes no promise here: two processes that add to one table may each lose vectors,
// which are then made again.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
