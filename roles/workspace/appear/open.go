package appear

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"wf/roles/workspace/internal/at"
)

// A stamp tells whether a file or directory is the one that was seen, unchanged.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns
	link         bool
}

func stampOf(s *unix.Stat_t) stamp {
	return stamp{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano(), kindOf(s) == unix.S_IFLNK} // 32 bits on some systems
}

func (a stamp) same(b stamp) bool { return a.dev == b.dev && a.ino == b.ino }

func kindOf(s *unix.Stat_t) uint32 { return uint32(s.Mode) & unix.S_IFMT } // 16 bits on some systems

// openBelow opens a directory by its path below another, or by an absolute one, of which no part is a link.
func openBelow(dir int, path string) (int, error) {
	if !filepath.IsAbs(path) && !filepath.IsLocal(path) {
		return -1, fs.ErrInvalid
	}
	return at.Walk(dir, path, unix.O_DIRECTORY)
}

// statBelow is lstat of a path below a directory, or of an absolute one, of which no part but the last may be a link.
func statBelow(root int, path string) (unix.Stat_t, error) {
	dir, name := split(path)
	fd, err := openBelow(root, dir)
	if err != nil {
		return unix.Stat_t{}, err
	}
	defer unix.Close(fd)
	return at.Stat(fd, name)
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

// split is path.Split without the slash; the directory of a name alone is ".".
func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:max(i, 1)], path[i+1:]
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
