//go:build !linux

package tool

import "syscall"

// dieWithParent does nothing where the system cannot tell a child that its parent has died.
func dieWithParent(*syscall.SysProcAttr) {}
