package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Writable reports whether this user may write into a directory; a missing one counts as
// writable, so that opening it says that it is missing.
func Writable(dir string) bool {
	err := unix.Access(dir, unix.W_OK)
	return err != unix.EACCES && err != unix.EROFS
}

// Exists reports whether something has that name; a link counts, wherever it leads.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Real is an absolute path without links; a part that is not there stays as it is.
func Real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}
