//go:build unix

package cas

import (
	"io/fs"
	"os"
	"syscall"
)

// openLock opens a lock file; flock works on a read-only descriptor too.
func openLock(path string, readOnly bool) (*os.File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if readOnly {
		flags = os.O_RDONLY
	}
	return openOwn(path, flags, 0o600, "a lock of wf must be", "remove it; wf makes a new one")
}

// ownedByAnother reports whether a file belongs to another user than the one we act as.
func ownedByAnother(fi fs.FileInfo) (uid int, other bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), int(st.Uid) != os.Geteuid()
}
