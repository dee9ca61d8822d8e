package mcp

import "syscall"

// dieWithParent ends a command when the thread that started it ends: after a kill -9 of wf the
// old command must not work beside the one that wf resume starts.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
