//go:build unix

package cas

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openLock opens a lock file; flock works on a read-only descriptor too.
func openLock(path string, readOnly bool) (*os.File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if readOnly {
		flags = os.O_RDONLY
	}
	return openOwn(path, flags, 0o600, "a lock of wf must be", "remove it; wf makes a new one")
}

// lockWait blocks until f is locked. The lock belongs to the descriptor: closing it, or the
// end of the process, frees it.
func lockWait(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// tryLock locks f exclusively if no other descriptor has it locked.
func tryLock(f *os.File) (bool, error) { return tryLockAs(f, unix.LOCK_EX) }

// tryLockAs is tryLock for a lock that may be shared: unix.LOCK_SH.
func tryLockAs(f *os.File, how int) (bool, error) {
	switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	default:
		return false, err
	}
}

func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // fails only for a bad descriptor, which holds nothing
}

// ownedByAnother reports whether a file belongs to another user than the one we act as.
func ownedByAnother(fi fs.FileInfo) (uid int, other bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), int(st.Uid) != os.Geteuid()
}
