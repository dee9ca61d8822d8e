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

// Nameless makes a file without a name in a directory.
func Nameless(dir int) (fd int, err error) {
	return unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
}

// Exchange has two names of a directory change places, at once. ErrCannot says that the file system does not do it.
func Exchange(dir int, a, b string) error { return rename(dir, a, b, unix.RENAME_EXCHANGE) }

// Move gives a file of a directory a name that is free, at once; one that is not is unix.EEXIST. ErrCannot says that the file
// system does not do it.
func Move(dir int, from, to string) error { return rename(dir, from, to, unix.RENAME_NOREPLACE) }

func rename(dir int, from, to string, how uint) error {
	err := again(func() error { return unix.Renameat2(dir, from, dir, to, how) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return ErrCannot
	}
	return err
}

// Written reports whether a process has a file open for writing: one that was opened to be read. Where that cannot be told
// it is not.
func Written(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return errors.Is(err, unix.EAGAIN)
}

// Flush has the file system of a directory write what it has.
func Flush(dir int) error { return again(func() error { return unix.Syncfs(dir) }) }

// Clone gives an empty file the content of another, with which it shares the blocks. ErrCannot says that the file system does not
// do it.
func Clone(to, from int) error {
	err := again(func() error { return unix.IoctlFileClone(to, from) })
	for _, cannot := range []error{unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL, unix.ENOTTY, unix.ENOSYS, unix.EPERM, unix.EACCES} {
		if errors.Is(err, cannot) {
			return ErrCannot
		}
	}
	return err
}
