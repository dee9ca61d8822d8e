package roles

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/files"
)

// A Spot is a directory for what has a name, one at a time: the same name has the same path.
//
//	NAME.lock       flock EX while it is used
//	NAME/work       where a command works
//	NAME/private    what it keeps for itself
type Spot struct {
	dir  string
	lock *os.File
}

// Work is where a command works.
func (s *Spot) Work() string { return filepath.Join(s.dir, "work") }

// Private is what it keeps for itself.
func (s *Spot) Private() string { return filepath.Join(s.dir, "private") }

// Claim waits until nothing else on this machine uses a name below root, and gives it an empty directory, until Leave is called.
func Claim(ctx context.Context, root, name string) (*Spot, error) {
	err := files.MakeDir(root)
	if err != nil {
		return nil, err
	}
	s := &Spot{dir: filepath.Join(root, name)}
	for {
		if s.lock, err = lockNamed(s.dir + ".lock"); err != nil {
			return nil, err
		}
		if s.lock != nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := errors.Join(removeAll(s.dir), os.MkdirAll(s.Work(), 0o700), os.MkdirAll(s.Private(), 0o700)); err != nil {
		s.Leave()
		return nil, err
	}
	return s, nil
}

// lockNamed locks a file that its last user removes; nil where it is locked.
func lockNamed(path string) (*os.File, error) {
	f, err := files.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := files.TryLock(f, false)
	if err == nil && ok {
		has, herr := f.Stat()
		is, ierr := os.Lstat(path)
		if herr == nil && ierr == nil && os.SameFile(has, is) {
			return f, nil
		}
		return nil, files.FreeLock(f) // it was removed meanwhile
	}
	return nil, errors.Join(err, f.Close())
}

// Leave removes the directory.
func (s *Spot) Leave() {
	_ = removeAll(s.dir) // what is left goes when the name comes next, or by SweepScratch
	_ = os.Remove(s.dir + ".lock")
	_ = files.FreeLock(s.lock)
}

// removeAll removes a directory with what commands closed in it.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll tells
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// scratchOld is how old a directory is that a process left behind.
const scratchOld = 24 * time.Hour

// Scratch is an empty directory below root, until drop is called.
func Scratch(root string) (dir string, drop func(), err error) {
	if err := files.MakeDir(root); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(root, "tools-")
	return dir, func() { _ = removeAll(dir) }, err // what is left goes by SweepScratch
}

// SweepScratch removes what processes that were killed left behind.
func SweepScratch(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < scratchOld {
			continue
		}
		if strings.HasPrefix(e.Name(), "tools-") {
			_ = removeAll(path)
		}
		if strings.HasSuffix(e.Name(), ".lock") {
			if lock, err := lockNamed(path); err == nil && lock != nil {
				(&Spot{strings.TrimSuffix(path, ".lock"), lock}).Leave()
			}
		}
	}
}
