package cas

import (
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// setDirect has what is written to a file go past the cache of the system, or through it again. Not every file system can do that.
func setDirect(f *os.File, on bool) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var flags int
		if flags, failed = unix.FcntlInt(fd, unix.F_GETFL, 0); failed != nil {
			return
		}
		flags &^= unix.O_DIRECT
		if on {
			flags |= unix.O_DIRECT
		}
		_, failed = unix.FcntlInt(fd, unix.F_SETFL, flags)
	})
	if err != nil {
		return err
	}
	return failed
}

// readAhead has the system read what lies around each page of the store that is asked for. bbolt asks it not to, so that reading all of
// a store that is in no cache waits for the disk at every page.
func readAhead(tx *bolt.Tx) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), unix.MADV_NORMAL) // without this advice it takes longer
}
