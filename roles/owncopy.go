package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
)

// An OwnCopy is the place of a copy of a workspace that one visit has for itself:
//
//	ROOT/RUN/KEY/files   what the visit sees as its workspace
//	ROOT/RUN/KEY/own     what confined commands keep beside it: HOME, TMPDIR, caches
//	ROOT/RUN/KEY/ready   written last: the copy is whole, and what is in it is what the visit made of it; a command begins anew all the same
//	ROOT/RUN/KEY.lock    held while a process works in it; its time is when it was last used
//
// With a key of ForkKey it is that of a fork, or of a run that has moved to this machine, in which all of its visits work, and other runs
// may: they share the lock.
// Whatever a process that was killed left without the mark is made anew. The directory lies outside of every workspace and
// repository, where commands of other visits may neither read nor write.
type OwnCopy struct {
	dir  string
	lock *os.File
}

// The names below the directory of a copy.
const (
	ownFiles = "files"
	ownReady = "ready"
	ownOwn   = "own"
)

// forkName begins the keys of files that a run has for itself. They are no visit's, and stay when the run is over.
const forkName = "fork"

// ForkKey is the key of the files that a run has for itself from an event on; 0 is a fork, from its beginning.
func ForkKey(from protocol.Seq) string {
	if from == 0 {
		return forkName
	}
	return fmt.Sprintf("%s@%d", forkName, from)
}

func isForkKey(key string) bool { return key == forkName || strings.HasPrefix(key, forkName+"@") }

// ForkedFiles is where a run has them.
func ForkedFiles(root string, run protocol.RunID, key string) string {
	return filepath.Join(root, string(run), key, ownFiles)
}

// IsForkedFiles reports whether a directory is of files that a run has for itself.
func IsForkedFiles(root, dir string) bool {
	key := filepath.Dir(dir)
	return isForkKey(filepath.Base(key)) && dir == ForkedFiles(root, protocol.RunID(filepath.Base(filepath.Dir(key))), filepath.Base(key))
}

// ShareOwnCopy keeps the copy in a directory from being removed until leave is called, together with others that share it.
func ShareOwnCopy(dir string) (leave func() error, err error) {
	for {
		lock, err := files.OpenFile(dir+".lock", os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err = files.WaitLock(lock, true); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		leave := func() error { return files.FreeLock(lock) }
		if !files.Named(lock) { // it was removed meanwhile
			if err := leave(); err != nil {
				return nil, err
			}
			continue
		}
		now := time.Now()
		if err := os.Chtimes(lock.Name(), now, now); err != nil {
			return nil, errors.Join(err, leave())
		}
		return leave, nil
	}
}

// OpenOwnCopy opens the place of a visit and keeps other processes out of it until Close. ready is what Ready was called with, ""
// for a copy that is yet to be made: its directory is empty. One that another process works in is an error wrapping
// protocol.ErrBusy.
func OpenOwnCopy(root string, run protocol.RunID, key string) (o *OwnCopy, ready string, err error) {
	o = &OwnCopy{dir: filepath.Join(root, string(run), key)}
	if err := files.MakeDir(filepath.Dir(o.dir)); err != nil {
		return nil, "", err
	}
	if o.lock, err = lockOwn(o.dir, os.O_CREATE); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	now := time.Now()
	if err := os.Chtimes(o.lock.Name(), now, now); err != nil {
		return nil, "", err
	}
	b, err := files.Read(filepath.Join(o.dir, ownReady), 4096)
	if err == nil && len(b) > 0 {
		return o, string(b), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	return o, "", o.Empty()
}

// lockOwn locks the copy in a directory; flags can make the file of the lock.
func lockOwn(dir string, flags int) (*os.File, error) {
	f, err := files.LockNamed(dir+".lock", flags)
	if errors.Is(err, files.ErrLocked) {
		err = fmt.Errorf("another process works in %s: %w", dir, protocol.ErrBusy)
	}
	return f, err
}

// Files is the directory that the visit sees as its workspace.
func (o *OwnCopy) Files() string { return filepath.Join(o.dir, ownFiles) }

// Private is where confined commands keep what is theirs.
func (o *OwnCopy) Private() string { return filepath.Join(o.dir, ownOwn) }

// Empty makes the directory empty.
func (o *OwnCopy) Empty() error {
	if err := removeOwn(o.dir); err != nil {
		return err
	}
	return files.MakeDir(o.Files())
}

// Ready marks the copy as whole, once its files are on disk.
func (o *OwnCopy) Ready(mark string) error {
	if err := workspace.Flush(o.Files()); err != nil {
		return err
	}
	return files.Replace(filepath.Join(o.dir, ownReady), []byte(mark))
}

// Close lets other processes in.
func (o *OwnCopy) Close() error { return files.FreeLock(o.lock) }

// DropOwnCopy removes the copy of a visit, unless a process works in it; one that is not there is none.
func DropOwnCopy(root string, run protocol.RunID, key string) error {
	dir := filepath.Join(root, string(run), key)
	lock, err := lockOwn(dir, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, protocol.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	err = removeOwn(dir)
	if err == nil {
		err = os.Remove(lock.Name())
	}
	if err = errors.Join(err, files.FreeLock(lock)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Dir(dir)); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// DropOwnCopies removes those of all visits of a run that no process works in; files that the run has for itself are none.
func DropOwnCopies(root string, run protocol.RunID) error {
	return dropCopies(root, run, func(key string) bool { return !isForkKey(key) })
}

// DropForkedFiles removes the files that a run has for itself, unless a process works in them.
func DropForkedFiles(root string, run protocol.RunID) error { return dropCopies(root, run, isForkKey) }

func dropCopies(root string, run protocol.RunID, which func(key string) bool) error {
	locks, err := filepath.Glob(filepath.Join(root, string(run), "*.lock"))
	for _, lock := range locks {
		if key := strings.TrimSuffix(filepath.Base(lock), ".lock"); which(key) {
			err = errors.Join(err, DropOwnCopy(root, run, key))
		}
	}
	return err
}

// removeOwn removes a directory; the mark goes first.
func removeOwn(dir string) error {
	if err := os.Remove(filepath.Join(dir, ownReady)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	return workspace.RemoveAll(dir)
}

// SweepOwnCopies counts the copies below the roots of all stores and finds the old ones, which no process has used since a time,
// with the bytes of their files; remove removes these. One that a process works in is never old.
func SweepOwnCopies(roots string, before time.Time, remove bool) (all, old int, bytes int64, err error) {
	locks, err := filepath.Glob(filepath.Join(roots, "*", "*", "*.lock"))
	if err != nil {
		return 0, 0, 0, err
	}
	var errs []error
	for _, name := range locks {
		all++
		dir := name[:len(name)-len(".lock")]
		used, err := os.Lstat(name)
		if err != nil || !used.ModTime().Before(before) {
			continue // it went just now, or is used
		}
		lock, err := lockOwn(dir, 0)
		if err != nil {
			if !errors.Is(err, protocol.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		errs = append(errs, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // a directory that was closed counts nothing
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
			return nil
		}), files.FreeLock(lock))
		old++
		if remove {
			run := filepath.Dir(dir)
			errs = append(errs, DropOwnCopy(filepath.Dir(run), protocol.RunID(filepath.Base(run)), filepath.Base(dir)))
		}
	}
	return all, old, bytes, errors.Join(errs...)
}
