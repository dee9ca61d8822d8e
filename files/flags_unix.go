//go:build unix

package files

import "syscall"

const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK // for the other end of a pipe
)
