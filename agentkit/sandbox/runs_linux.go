package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
)

// What commands of a run leave in HOME and TMPDIR lies in a directory of the run, which is held by a lock on itself while a
// command works, and goes with the run:
//
//	run-… ──the run ends──► gone-… ──► removed: at once where it is small, else by a process of its own
//
// Who is killed before the name is another has not recorded the end of the run either. What is gone by its name alone is
// removed by the next process that confines a command, and by wf doctor --clean.
const gonePrefix = "gone-"

// smallMax is up to how many files and directories are removed at once.
const smallMax = 256

// holdRun makes the directory of a run, and keeps it.
func holdRun(dir string) (*os.File, error) {
	for {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		f, err := holdSelf(dir)
		if err != nil || f != nil {
			if err == nil {
				now := time.Now()
				err = os.Chtimes(dir, now, now)
			}
			return f, err
		}
	}
}

// holdGone makes a directory for one command alone.
func holdGone(root string) (*os.File, string, error) {
	for {
		dir, err := os.MkdirTemp(root, gonePrefix)
		if err != nil {
			return nil, "", err
		}
		if f, err := holdSelf(dir); err != nil || f != nil {
			return f, dir, err
		}
	}
}

// holdSelf locks a directory against its removal; nil where it is being removed.
func holdSelf(dir string) (*os.File, error) {
	f, err := openOwn(dir)
	if f == nil || err != nil {
		return nil, err
	}
	if f, err = locked(f, true); f == nil || err != nil {
		return nil, err
	}
	if isAt(f, dir) {
		return f, nil
	}
	return nil, files.FreeLock(f)
}

// openOwn opens a directory of a run, from which a command may have taken modes; nil where there is none.
func openOwn(dir string) (*os.File, error) {
	err := enterable(dir)
	var f *os.File
	if err == nil {
		f, err = os.Open(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// isAt reports whether an open directory still lies at a path.
func isAt(f *os.File, dir string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(dir)
	return err == nil && os.SameFile(held, now)
}

// Forget removes what the commands of runs that end keep in HOME and TMPDIR. Large directories are not waited for.
func Forget(run protocol.RunID) error {
	root, err := privateRoot()
	if err != nil {
		return nil // no command of a run had a place
	}
	dir := runDir(root, run)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	gone, err := retire(dir)
	if err != nil {
		return fmt.Errorf("remove what commands of the run %s left in their HOME: %w", run, err)
	}
	if gone != "" {
		discard(gone)
	}
	return nil
}

// retire gives a directory the name of one that is gone; "" where another did.
func retire(dir string) (gone string, err error) {
	if gone, err = os.MkdirTemp(filepath.Dir(dir), gonePrefix); err != nil {
		return "", err
	}
	if err = unix.Rename(dir, gone); err == nil { // over an empty directory, which os.Rename refuses
		return gone, nil
	}
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return "", errors.Join(err, unlessGone(os.Remove(gone)))
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// discard removes a directory, or has a process of its own remove it.
func discard(dir string) {
	if isSmall(dir) && workspace.RemoveAll(dir) == nil {
		return
	}
	startSweep()
}

func isSmall(dir string) bool {
	n := 0
	err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error {
		if n++; n > smallMax {
			return fs.SkipAll
		}
		return nil
	})
	return err == nil && n <= smallMax
}

// startSweep starts a process that removes what is gone. It outlives this one.
func startSweep() {
	if !ready {
		return
	}
	env := []string{"GOMAXPROCS=1", "HOME=" + os.Getenv("HOME"), "XDG_CACHE_HOME=" + os.Getenv("XDG_CACHE_HOME")}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{sweepMarker}, Env: env, Dir: "/", SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if cmd.Start() == nil {
		go cmd.Wait() //nolint:errcheck // what it could not remove stays for the next one
	}
}

var sweepBegan sync.Once

// sweepOnce has what earlier processes could not remove removed.
func sweepOnce(root string) {
	sweepBegan.Do(func() {
		go func() {
			entries, _ := os.ReadDir(root) // the next process looks, too
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), gonePrefix) {
					startSweep()
					return
				}
			}
		}()
	})
}

// sweepGone removes what is gone by its name, and exits.
func sweepGone() {
	root, err := privateRoot()
	if err == nil {
		var entries []os.DirEntry
		entries, err = os.ReadDir(root)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), gonePrefix) {
				_, _, failed := sweepRun(filepath.Join(root, e.Name()), time.Time{}, true)
				err = errors.Join(err, failed)
			}
		}
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// sweepRun removes the directory of a run that no command has used since a time, or one that is gone.
func sweepRun(dir string, before time.Time, remove bool) (bytes int64, old bool, err error) {
	gone := strings.HasPrefix(filepath.Base(dir), gonePrefix)
	f, err := openOwn(dir)
	if f == nil || err != nil {
		return 0, false, err
	}
	defer files.FreeLock(f)
	if free, err := files.TryLock(f, false); err != nil || !free {
		return 0, false, err
	}
	info, err := f.Stat() // not before: a command may have ended meanwhile
	if err != nil || !gone && !info.ModTime().Before(before) || !isAt(f, dir) {
		return 0, false, err
	}
	bytes, err = sizeOf(dir)
	if remove && !gone { // its next command waits for no removal
		if dir, err = retire(dir); err != nil || dir == "" {
			return 0, false, err
		}
	}
	if remove {
		err = errors.Join(err, workspace.RemoveAll(dir))
	}
	return bytes, err == nil, err
}

// sizeOf is how many bytes the files below a directory have, as far as they can be looked at.
func sizeOf(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes, err
}
