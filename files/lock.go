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
