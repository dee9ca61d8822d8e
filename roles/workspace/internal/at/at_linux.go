package at

import (
	"errors"
	"fmt"
	"os"

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

// Nameless makes a file without a name in a directory, with a mode as the umask lets it.
func Nameless(dir int, mode uint32) (fd int, err error) {
	return unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, mode)
}

// Name gives a file without a name one in a directory, which is free.
func Name(fd, dir int, name string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), dir, name, unix.AT_SYMLINK_FOLLOW)
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

// Chmod sets the mode of what is open for its name alone.
func Chmod(fd int, mode uint32) error {
	return again(func() error { return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) })
}

// Ours opens a name in a directory, or the directory itself as ".", so that its mode can be set: whatever mode it has.
func Ours(dir int, name string) (fd int, err error) { return Open(dir, name, unix.O_PATH) }

// May reports whether this user may do something, such as unix.W_OK, with what is open for its name alone.
func May(fd int, what uint32) bool {
	return again(func() error {
		return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), what, unix.AT_EACCESS)
	}) == nil
}

// Root is an open directory, by which nothing outside of it is reached; fd stays open.
func Root(fd int) (*os.Root, error) { return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd)) }

// Bound reports whether a socket is open under a name in a directory: anything else there is not, and a file that a process which
// ended has left. Nothing reaches that process: an address is found before the kinds of two sockets are compared, and no
// socket that takes connections is of the kind that asks.
func Bound(dir int, name string) (bool, error) {
	file, err := Open(dir, name, unix.O_PATH)
	if err != nil {
		return false, err
	}
	defer unix.Close(file)
	var s unix.Stat_t
	if err := unix.Fstat(file, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	err = again(func() error { return unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d", file)}) })
	if errors.Is(err, unix.ECONNREFUSED) {
		return false, nil
	}
	return true, nil // also one that this process may not reach
}
