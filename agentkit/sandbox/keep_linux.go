package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/files"
	"wf/protocol/lazy"
	"wf/roles/workspace"
)

// privateName is how directories of caches are called, or with go- those of a seed. Beside each lies its lock,
// held while a command runs; when it was last taken is when the directory was last used.
var privateName = lazy.Regexp(`^(go-)?[0-9a-f]{16}$`)

// hold names the directories of a policy and keeps them from being swept until release is called.
func (p *Policy) hold() (release func(), err error) {
	workspace, err := filepath.EvalSymlinks(p.Workspace)
	if err != nil {
		return nil, err
	}
	if p.at, err = p.places(workspace); err != nil || p.Private != "" { // the caller that named it removes it
		return func() {}, err
	}
	root := filepath.Dir(p.at.caches)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	sweepOnce(root)
	caches, err := lockDir(p.at.caches)
	if err != nil {
		return nil, err
	}
	if p.Trust.Run == "" {
		run, dir, err := holdGone(root)
		if err != nil {
			caches.Close()
			return nil, err
		}
		p.at.run = dir
		return func() { files.FreeLock(caches); files.FreeLock(run); discard(dir) }, nil
	}
	dir := filepath.Dir(p.at.run)
	run, err := holdRun(dir)
	if err != nil {
		caches.Close()
		return nil, err
	}
	return func() {
		files.FreeLock(caches)
		over := !isAt(run, dir)
		files.FreeLock(run)
		if over { // the run has ended under the command: while it worked nobody could remove all of it
			startSweep()
		}
	}, nil
}

// lockDir keeps a directory below the root of private ones from being swept, and says that it was used.
func lockDir(dir string) (*os.File, error) {
	lock, err := besideOf(dir)
	if err == nil {
		now := time.Now()
		if err = files.WaitLock(lock, true); err == nil { // a sweep has it for no longer than it takes to rename the directory
			err = os.Chtimes(lock.Name(), now, now)
		}
		if err != nil {
			lock.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return lock, nil
}

// besideOf opens the lock of a directory.
func besideOf(dir string) (*os.File, error) {
	return os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
}

// Sweep counts the directories of caches and finds the old ones, which no command has
// used since a time, with their size in bytes, beside those of runs that nobody went on with since; remove removes these. One
// that a command uses now is never old.
func Sweep(before time.Time, remove bool) (all, old int, bytes int64, err error) {
	root, err := privateRoot()
	if err != nil {
		return 0, 0, 0, err
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, 0, err
	}
	var errs []error
	for _, e := range entries {
		sweep := sweepCaches
		switch {
		case !e.IsDir():
			continue
		case strings.HasPrefix(e.Name(), runPrefix), strings.HasPrefix(e.Name(), gonePrefix):
			sweep = sweepRun
		case !privateName().MatchString(e.Name()):
			continue
		case !strings.HasPrefix(e.Name(), "go-"):
			all++
		}
		n, swept, err := sweep(filepath.Join(root, e.Name()), before, remove)
		if errs = append(errs, err); swept {
			old, bytes = old+1, bytes+n
		}
	}
	return all, old, bytes, errors.Join(errs...)
}

func sweepCaches(dir string, before time.Time, remove bool) (bytes int64, old bool, err error) {
	used, err := os.Stat(dir + ".lock")
	locks := err == nil
	if errors.Is(err, fs.ErrNotExist) { // of a wf that had no locks
		used, err = os.Stat(dir)
	}
	if err != nil || !used.ModTime().Before(before) {
		return 0, false, err
	}
	lock, err := besideOf(dir)
	if err != nil {
		return 0, false, err
	}
	free, err := files.TryLock(lock, false)
	if free && locks {
		if used, err = lock.Stat(); err == nil && !used.ModTime().Before(before) {
			err = files.Unlock(lock) // a command has begun and ended meanwhile
			free = false
		}
	}
	if err != nil || !free {
		lock.Close()
		return 0, false, err
	}
	if remove {
		dir, err = retire(dir)
	}
	if err = errors.Join(err, files.FreeLock(lock)); err != nil || dir == "" {
		return 0, false, err
	}
	bytes, err = sizeOf(dir)
	if remove {
		err = errors.Join(err, enterable(dir), workspace.RemoveAll(dir))
	}
	return bytes, err == nil, err
}
