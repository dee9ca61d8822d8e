package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks an open file, or directory, for itself, or together with others that share it. It is false where
// another descriptor has a lock that does not allow this one. The lock goes with FreeLock, or with the process.
func TryLock(f *os.File, shared bool) (bool, error) {
	err := flock(f, kind(shared)|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// WaitLock is TryLock that waits until it can.
func WaitLock(f *os.File, shared bool) error { return flock(f, kind(shared)) }

// Unlock frees the lock of a file that stays open. It fails only for a bad descriptor, which holds nothing.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

// FreeLock frees the lock of a file and closes the file. To close it alone is not enough: a child that is being
// started has a copy of the descriptor, and with it the lock, until it executes its program.
func FreeLock(f *os.File) error { return errors.Join(Unlock(f), f.Close()) }

// ErrLocked is a file that another process, or another descriptor of this one, has locked.
var ErrLocked = errors.New("another process has it locked")

// LockNamed locks a file for itself that whichever process has it locked may remove; flags can be os.O_CREATE. The error wraps
// ErrLocked where it is locked already.
func LockNamed(path string, flags int) (*os.File, error) {
	for {
		f, err := OpenFile(path, os.O_RDWR|flags, 0o600)
		if err != nil {
			return nil, err
		}
		free, err := TryLock(f, false)
		if err == nil && !free {
			err = ErrLocked
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if Named(f) {
			return f, nil
		}
		if err := FreeLock(f); err != nil { // it was removed meanwhile
			return nil, err
		}
	}
}

// Named reports whether an open file is still what its name leads to.
func Named(f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(own, now)
}

func kind(shared bool) int {
	if shared {
		return unix.LOCK_SH
	}
	return unix.LOCK_EX
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
