// Package at opens files by their names from an open directory, so that no link on the way is followed.
package at

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrCannot is what the file system does not do.
var ErrCannot = errors.New("the file system cannot do it")

// ErrNoFile is what is there and is no regular file.
var ErrNoFile = errors.New("no regular file")

// ErrNoLink is what is there and is no link.
var ErrNoLink = errors.New("no link")

// Open opens a name in a directory, or the directory itself as ".", without waiting for the other end of a pipe.
func Open(dir int, name string, flags int) (fd int, err error) {
	dir, name = from(dir, name)
	err = again(func() error {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|flags, 0)
		return err
	})
	return fd, err
}

// Stat is lstat of a name in a directory.
func Stat(dir int, name string) (s unix.Stat_t, err error) {
	dir, name = from(dir, name)
	err = again(func() error { return unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) })
	return s, err
}

// Link is the text of a link, of up to unix.PathMax bytes. ErrNoLink says that something else lies under the name.
func Link(dir int, name string) (string, error) {
	dir, name = from(dir, name)
	buf := make([]byte, unix.PathMax+1)
	var n int
	err := again(func() (err error) { n, err = unix.Readlinkat(dir, name, buf); return err })
	if errors.Is(err, unix.EINVAL) || n > unix.PathMax {
		return "", ErrNoLink
	}
	return string(buf[:max(n, 0)]), err
}

// Names reads names of an open directory for unix.ParseDirent; none when there are no more, or the directory was removed.
func Names(dir int, buf []byte) (n int, err error) {
	err = again(func() error { n, err = unix.ReadDirent(dir, buf); return err })
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	return n, err
}

// Walk opens a path from a directory, or from the top where it is absolute. No part of it may be a link.
func Walk(dir int, name string, flags int) (int, error) {
	if name == "" {
		return -1, unix.ENOENT
	}
	dir, name = from(dir, path.Clean(name)) // without links a path means what it says: a/../b is b
	if fd, known, err := walkAtOnce(dir, name, flags); known {
		return fd, err
	}
	return walkByName(dir, name, flags)
}

func walkByName(dir int, name string, flags int) (int, error) {
	start := "."
	if path.IsAbs(name) {
		start = "/"
	}
	at, err := Open(dir, start, unix.O_DIRECTORY)
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	for i, part := range parts {
		if err != nil || part == "" {
			break
		}
		how := unix.O_DIRECTORY
		if i == len(parts)-1 {
			how = flags
		}
		var next int
		next, err = Open(at, part, how)
		unix.Close(at)
		at = next
	}
	return at, err
}

// Regular is Walk to a regular file.
func Regular(dir int, name string) (*os.File, error) {
	f, _, err := Readable(dir, name)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(f), name), nil
}

// A File is an open regular file. Other than *os.File it costs no calls of the system but those that are asked for.
type File int

// Readable is Regular, and tells the stat of the file.
func Readable(dir int, name string) (f File, s unix.Stat_t, err error) {
	fd, err := Walk(dir, name, 0)
	if err != nil {
		return -1, s, err
	}
	if err = unix.Fstat(fd, &s); err == nil && s.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNoFile
	}
	if err != nil {
		unix.Close(fd)
		return -1, s, err
	}
	return File(fd), s, nil
}

func (f File) Read(p []byte) (n int, err error) {
	err = again(func() error { n, err = unix.Read(int(f), p); return err })
	if n == 0 && len(p) > 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func (f File) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		m := 0
		err = again(func() error { m, err = unix.Write(int(f), p[n:]); return err })
		n += max(m, 0)
	}
	return n, err
}

// Sync has a file or directory on disk.
func Sync(fd int) error {
	err := again(func() error { return unix.Fsync(fd) })
	if errors.Is(err, unix.EINVAL) { // no such thing for a directory there
		err = Flush(fd)
	}
	return err
}

// again calls the system once more where a signal came in between.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
