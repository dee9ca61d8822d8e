//go:build unix

package cas

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"wf/protocol"
)

// openLock opens a lock file; flock works on a read-only descriptor too.
func openLock(path string, readOnly bool) (*os.File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if readOnly {
		flags = os.O_RDONLY
	}
	return openOwn(path, flags, 0o600, noLock)
}

// noLock refuses what lies in place of a lock file.
func noLock(path string) error {
	return &protocol.Error{Code: protocol.ErrStore.Code, Message: path + " is not a regular file, as a lock of wf must be", Hint: "remove it; wf makes a new one"}
}

// openOwn opens a file of the store. A store may lie in a workspace, where an agent can write: a
// link in place of the file is refused, since its target would be read or written to, and so is a
// pipe, which does not block, or a device.
func openOwn(path string, flags int, mode fs.FileMode, refuse func(path string) error) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
	if err != nil {
		if info, look := os.Lstat(path); look == nil && !info.Mode().IsRegular() {
			return nil, refuse(path)
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
func tryLock(f *os.File) (bool, error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
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
