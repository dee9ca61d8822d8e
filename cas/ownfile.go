package cas

import (
	"errors"
	"os"

	"wf/files"
	"wf/protocol"
)

// openOwn opens a file of the store. A store may lie in a workspace, where an agent can write: a
// link in place of the file is refused, since its target would be read or written to, and so is a
// pipe, which does not block, or a device.
func openOwn(path string, flags int, mode os.FileMode, as, hint string) (*os.File, error) {
	f, err := files.OpenFile(path, flags, mode)
	if errors.Is(err, files.ErrOdd) {
		err = &protocol.Error{Code: protocol.ErrStore.Code, Message: path + " is not a regular file, as " + as, Hint: hint}
	}
	return f, err
}

// openData opens store.db or a file of blobs for reading.
func openData(path string) (*os.File, error) { return openBolt(path, os.O_RDONLY, 0) }

// openBolt opens store.db for bbolt.
func openBolt(path string, flags int, mode os.FileMode) (*os.File, error) {
	return openOwn(path, flags, mode, "wf makes it", "put back what was there, or a copy of the store; a store may be reached by a link to its directory")
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
