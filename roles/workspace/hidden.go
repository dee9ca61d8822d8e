package workspace

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"wf/roles/workspace/internal/at"
)

// hidden tells Hidden of a name.
func (x *taker) hidden(dir int, name, path string) error {
	if x.Hidden == nil {
		return nil
	}
	s, err := at.Stat(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	mode := fs.ModeIrregular
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		mode = 0
	case unix.S_IFDIR:
		mode = fs.ModeDir
	case unix.S_IFLNK:
		mode = fs.ModeSymlink
	}
	x.puts.Lock()
	defer x.puts.Unlock()
	x.Hidden(path, mode)
	return nil
}
