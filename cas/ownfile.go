package cas

import (
	"errors"
	"os"

	"wf/files"
	"wf/protocol"
)

// noData refuses what lies in place of store.db or of a file of blobs.
func noData(path string) error {
	return &protocol.Error{Code: protocol.ErrStore.Code, Message: path + " is not a regular file, as wf makes it",
		Hint: "put back what was there, or a copy of the store; a store may be reached by a link to its directory"}
}

// openData opens store.db or a file of blobs for reading.
func openData(path string) (*os.File, error) { return openOwn(path, os.O_RDONLY, 0, noData) }

// openBolt opens store.db for bbolt.
func openBolt(path string, flags int, mode os.FileMode) (*os.File, error) {
	return openOwn(path, flags, mode, noData)
}

// readData reads a file of blobs, which has a pack of one block.
func readData(path string) ([]byte, error) {
	f, err := openData(path)
	if err != nil {
		return nil, err
	}
	b, err := files.Bounded(f, 2*BlockMax)
	return b, errors.Join(err, f.Close())
}
