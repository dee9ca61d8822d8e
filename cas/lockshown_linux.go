package cas

import (
	"os"

	"golang.org/x/sys/unix"
)

// Linux answers no question about a flock. So its holder takes an open file description lock
// (fcntl(2)) beside it, on the same descriptor, which F_OFD_GETLK tells of: across threads,
// processes and pid namespaces. Both go with the descriptor.

// showLock lets lockShown see that f is locked; the caller holds its flock.
func showLock(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
}

// hideLock takes back showLock.
func hideLock(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK})
}

// lockShown reports whether the file is locked through another descriptor, and takes no lock.
func lockShown(f *os.File) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l)
	return err == nil && l.Type != unix.F_UNLCK, err
}
