//go:build !linux

package mcp

import "syscall"

// dieWithParent does nothing where the system cannot do it.
func dieWithParent(*syscall.SysProcAttr) {}
