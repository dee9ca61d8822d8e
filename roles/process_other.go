//go:build !linux

package roles

import "syscall"

// DieWithParent does nothing where the system cannot do it.
func DieWithParent(*syscall.SysProcAttr) {}

// groupLives reports whether the group still has a process.
func groupLives(group int) bool { return syscall.Kill(-group, 0) == nil }
