package ask

import "golang.org/x/sys/unix"

// flush drops what a terminal has that was not read.
func flush(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
