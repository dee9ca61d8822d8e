package appear

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A stamp tells whether a file or directory is the one that was seen, unchanged.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns
}

func stampOf(s *unix.Stat_t) stamp {
	return stamp{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()} // 32 bits on some systems
}

func (a stamp) same(b stamp) bool { return a.dev == b.dev && a.ino == b.ino }

// statIn is lstat of a name in an open directory.
func statIn(dir int, name string) (unix.Stat_t, error) {
	var s unix.Stat_t
	err := again(func() error { return unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) })
	return s, err
}

func kindOf(s *unix.Stat_t) uint32 { return uint32(s.Mode) & unix.S_IFMT } // 16 bits on some systems

// openIn opens a name in an open directory, which is no link.
func openIn(dir int, name string, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|flags, 0)
		return err
	})
	return fd, err
}

// openBelow opens a directory by its path below another, of which no part is a link.
func openBelow(dir int, path string) (int, error) {
	if fd, known, err := openAtOnce(dir, path); known {
		return fd, err
	}
	at, err := openIn(dir, ".", unix.O_DIRECTORY)
	for _, part := range strings.Split(path, "/") {
		if err != nil || part == "" || part == "." {
			continue
		}
		if part == ".." {
			err = fs.ErrInvalid
		}
		next := -1
		if err == nil {
			next, err = openIn(at, part, unix.O_DIRECTORY)
		}
		unix.Close(at)
		at = next
	}
	if err != nil {
		return -1, err
	}
	return at, nil
}

// statBelow is lstat of a path below a directory, of which no part but the last may be a link.
func statBelow(root int, path string) (unix.Stat_t, error) {
	dir, name := split(path)
	at, err := openBelow(root, dir)
	if err != nil {
		return unix.Stat_t{}, err
	}
	defer unix.Close(at)
	return statIn(at, name)
}

// readBelow reads a regular file of at most max bytes.
func readBelow(root int, path string, max int64) ([]byte, error) {
	dir, name := split(path)
	at, err := openBelow(root, dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	fd, err := openIn(at, name, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(f, max))
}

// entries gives the names in an open directory. A file system that does not tell their kinds is asked by the
// descriptor, so that no link is followed. yield returns false for no more.
func entries(dir *os.File, yield func(fs.DirEntry) bool) error {
	for {
		some, err := dir.ReadDir(1_000)
		for _, e := range some {
			if !yield(e) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(some) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// listing is a directory for entries, which closes fd.
func listing(fd int) *os.File { return os.NewFile(uintptr(fd), fmt.Sprintf("/proc/self/fd/%d", fd)) }

func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// split is path.Split without the slash; the directory of a name alone is ".".
func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return ".", path
}

// join is the path of a name in a directory, which is "." for the top; a name of "" is the directory.
func join(dir, name string) string {
	switch {
	case name == "":
		return dir
	case dir == ".":
		return name
	}
	return dir + "/" + name
}
