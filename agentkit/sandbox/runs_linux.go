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
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f, err = locked(f, true); f == nil || err != nil {
		return nil, err
	}
	held, err := f.Stat()
	if err == nil {
		var now fs.FileInfo
		if now, err = os.Lstat(dir); err == nil && os.SameFile(held, now) {
			return f, nil
		}
	}
	f.Close()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, err
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
	gone, err := os.MkdirTemp(root, gonePrefix)
	if err == nil {
		err = unix.Rename(dir, gone) // over an empty directory, which os.Rename refuses
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what commands of the run %s left in their HOME: %w", run, err)
	}
	discard(gone)
	return nil
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
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !gone && !info.ModTime().Before(before) {
		return 0, false, err
	}
	if free, err := files.TryLock(f, false); err != nil || !free {
		return 0, false, err
	}
	bytes, err = sizeOf(dir)
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
