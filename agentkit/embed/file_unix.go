//go:build unix

package embed

import (
	"os"
	"syscall"
)

// ownFile refuses a link in place of a file of the table, and does not wait for the other end of a pipe:
// tables lie in stores, and a store may come from elsewhere.
const ownFile = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// mapFile gives the first n bytes of a file without copying them.
func mapFile(f *os.File, n int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmap(b []byte) error {
	if b == nil {
		return nil
	}
	return syscall.Munmap(b)
}

// lockFile waits for the lock of a file. It is free again when its holder ends.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|ownFile, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return func() { _ = f.Close() }, nil // frees the lock; nothing was written
}
