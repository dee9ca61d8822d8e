package at

import (
	"errors"

	"golang.org/x/sys/unix"
)

// walkAtOnce is Walk by one call of the system; known is false where that does not answer.
func walkAtOnce(dir int, path string, flags int) (fd int, known bool, err error) {
	err = again(func() error {
		fd, err = unix.Openat2(dir, path, &unix.OpenHow{
			Flags:   uint64(unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | flags),
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		return err
	})
	known = err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES)
	return fd, known, err
}

// PathOnly opens a directory for its name alone, also one that may not be read.
const PathOnly = unix.O_PATH
