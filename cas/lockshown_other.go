//go:build unix && !linux

package cas

import (
	"os"

	"golang.org/x/sys/unix"
)

// The BSDs, macOS among them, keep flocks and the locks of fcntl(2) in one list: F_GETLK tells
// of both.

// showLock has nothing to do: lockShown sees the flock.
func showLock(*os.File) error { return nil }

// hideLock has as little to do.
func hideLock(*os.File) error { return nil }

// lockShown reports whether the file is locked through another descriptor, and takes no lock.
func lockShown(f *os.File) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l)
	return err == nil && l.Type != unix.F_UNLCK, err
}
