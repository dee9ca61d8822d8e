//go:build !linux

package ask

import "golang.org/x/sys/unix"

// fread is FREAD of <sys/fcntl.h>: the input of a terminal.
const fread = 1

// flush drops what a terminal has that was not read.
func flush(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
