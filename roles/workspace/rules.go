package workspace

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// RulesOf reads the files of rules of a directory. What is no file, or may not be read, has none.
func RulesOf(root string) tree.Rules {
	return func(path string) ([]byte, error) {
		top, err := unix.Open(Opened(root), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer unix.Close(top)
		f, err := at.Regular(top, path)
		if noFile(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, tree.IgnoreMax+1))
	}
}

// noFile reports whether an error says that nothing of the kind lies under a name, or that it may not be read.
func noFile(err error) bool {
	for _, none := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENXIO, unix.EACCES, unix.EPERM, at.ErrNoFile, at.ErrNoLink} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}
