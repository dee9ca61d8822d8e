//go:build !linux

package roles

import "syscall"

// dieWithParent does nothing where the system cannot do it.
func dieWithParent(*syscall.SysProcAttr) {}
