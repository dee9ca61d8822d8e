package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/protocol/lazy"
)

// privateName is how the private directory of a workspace is called, or with go- that of a seed. Beside it lies its lock,
// held while a command runs; when it was last taken is when the directory was last used.
var privateName = lazy.Regexp(`^(go-)?[0-9a-f]{16}$`)

// hold keeps the private directory of a policy from being swept until release is called.
func (p Policy) hold() (release func(), err error) {
	if p.Private != "" {
		return func() {}, nil // the caller that named it removes it
	}
	workspace, err := filepath.EvalSymlinks(p.Workspace)
	if err != nil {
		return nil, err
	}
	dir, err := privateDir(workspace)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	return func() { lock.Close() }, nil
}

// lockDir keeps a directory below the root of private ones from being swept, and says that it was used.
func lockDir(dir string) (*os.File, error) {
	lock, err := lockBeside(dir, true)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	now := time.Now()
	if err := os.Chtimes(lock.Name(), now, now); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return lock, nil
}

func lockBeside(dir string, shared bool) (*os.File, error) {
	f, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return locked(f, shared)
}

// Sweep counts the private directories of commands and finds the old ones, which no command has
// used since a time, with their size in bytes; remove removes these. One that a command uses
// now is never old.
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
		if !e.IsDir() || !privateName().MatchString(e.Name()) {
			continue
		}
		if !strings.HasPrefix(e.Name(), "go-") {
			all++
		}
		n, swept, err := sweep(filepath.Join(root, e.Name()), before, remove)
		if errs = append(errs, err); swept {
			old, bytes = old+1, bytes+n
		}
	}
	return all, old, bytes, errors.Join(errs...)
}

func sweep(dir string, before time.Time, remove bool) (bytes int64, old bool, err error) {
	used, err := os.Stat(dir + ".lock")
	if errors.Is(err, fs.ErrNotExist) { // of a wf that had no locks
		used, err = os.Stat(dir)
	}
	if err != nil || !used.ModTime().Before(before) {
		return 0, false, err
	}
	lock, err := lockBeside(dir, false)
	if err != nil || lock == nil {
		return 0, false, err // or a command has just begun
	}
	defer lock.Close()
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if remove && e.IsDir() {
			return os.Chmod(path, 0o700) // module caches are read-only
		}
		return nil
	})
	if err == nil && remove {
		err = os.RemoveAll(dir)
	}
	return bytes, err == nil, err
}
