package roles

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"wf/files"
)

// What a command is given to read lies in the directory for temporary files, under names that begin so. The process that
// wrote such a file holds a lock on it while it exists: one without is of a process that was killed.
const (
	turnFiles  = "wf-turn."
	stdinFiles = "wf-stdin."
)

// newInput makes a file that is locked until it is closed.
func newInput(pattern string) (*os.File, error) {
	for {
		f, err := os.CreateTemp("", pattern)
		if err != nil {
			return nil, err
		}
		free, err := files.TryLock(f, true)
		if err == nil && free && files.Named(f) {
			return f, nil
		}
		_ = f.Close() // nothing was written
		if err != nil {
			_ = os.Remove(f.Name()) // the error says more
			return nil, err
		} // else another process took it for one that was left, and removes it
	}
}

var sweepOnce sync.Once

// sweepInputs removes what processes of this user left in a directory when they were killed. What cannot be removed stays.
func sweepInputs(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return // then nothing can be made in it either, which is said there
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1000)
		for _, name := range names {
			if strings.HasPrefix(name, turnFiles) || strings.HasPrefix(name, stdinFiles) || strings.HasPrefix(name, givenFiles) {
				sweepInput(filepath.Join(dir, name))
			}
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

func sweepInput(path string) {
	f, err := files.Open(path)
	if err != nil {
		return // of another user, or none of ours
	}
	defer func() { _ = files.FreeLock(f) }() // nothing was written
	if s, err := f.Stat(); err != nil || s.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return
	}
	if free, err := files.TryLock(f, false); err == nil && free && files.Named(f) {
		if strings.HasPrefix(filepath.Base(path), givenFiles) && removeGiven(path+givenDir) != nil {
			return // it keeps its name
		}
		_ = os.Remove(path)
	}
}
