package main

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// writable reports whether this user may write into a directory; a missing one counts as
// writable, so that whoever opens it says that it is missing.
func writable(dir string) bool {
	err := unix.Access(dir, unix.W_OK)
	return err != unix.EACCES && err != unix.EROFS
}

// there reports whether something has that name.
func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
