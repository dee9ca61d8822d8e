package roles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"wf/files"
	"wf/roles/workspace"
)

// givenFiles is how the files begin that stand for the directories of Given; such a directory has their name with givenDir
// behind it. The file is locked as those of newInput are, and what is left of a process that was killed goes with it.
const (
	givenFiles = "wf-artifacts."
	givenDir   = ".d"
)

// Given is a directory for what one attempt of a visit is given to read. Only this user can enter it.
type Given struct {
	Path string
	lock *os.File
}

// NewGiven makes an empty one, and removes those of processes that were killed.
func NewGiven() (*Given, error) {
	sweepOnce.Do(func() { sweepInputs(os.TempDir()) })
	lock, err := newInput(givenFiles + "*")
	if err != nil {
		return nil, err
	}
	g := &Given{Path: lock.Name() + givenDir, lock: lock}
	if err := os.Mkdir(g.Path, 0o700); err != nil {
		return nil, errors.Join(err, os.Remove(lock.Name()), files.FreeLock(lock))
	}
	return g, nil
}

// Seal has nothing be added or removed in it any more.
func (g *Given) Seal() error {
	var dirs []string
	err := filepath.WalkDir(g.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range dirs {
		err = errors.Join(err, os.Chmod(dir, 0o500))
	}
	return err
}

// Remove removes it with all that is in it.
func (g *Given) Remove() error {
	err := removeGiven(g.Path)
	return errors.Join(err, os.Remove(g.lock.Name()), files.FreeLock(g.lock))
}

// removeGiven removes a sealed directory of this user; links in it are not followed.
func removeGiven(path string) error {
	s, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !s.IsDir() || s.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()):
		return nil // it is none of ours
	}
	return workspace.RemoveAll(path)
}
