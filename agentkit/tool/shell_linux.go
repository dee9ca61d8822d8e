package tool

import "syscall"

// dieWithParent ends a command when the thread that started it ends: after a kill -9 of wf
// nothing goes on working in the workspace.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
