package appear

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openAtOnce is openBelow by one call of the system; known is false where that does not answer.
func openAtOnce(dir int, path string) (fd int, known bool, err error) {
	err = again(func() error {
		fd, err = unix.Openat2(dir, path, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_DIRECTORY | unix.O_NONBLOCK,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		return err
	})
	known = err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES)
	return fd, known, err
}

// pathOnly opens a directory for its name alone, also one that may not be read.
const pathOnly = unix.O_PATH
