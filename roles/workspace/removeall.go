package workspace

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// outlived is how often a directory is removed in which something new turns up meanwhile.
const outlived = 100

// RemoveAll removes a directory that a run worked in, also where a directory in it cannot be written, and where a program that
// outlived its command writes in it: what is removed once does not come back.
func RemoveAll(dir string) error {
	err := removeAll(dir)
	for n := 1; n < outlived && errors.Is(err, unix.ENOTEMPTY); n++ {
		err = removeAll(dir)
	}
	return err
}

func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return nil // what cannot be looked at is told when it cannot be removed
	})
	return errors.Join(err, os.RemoveAll(dir))
}
