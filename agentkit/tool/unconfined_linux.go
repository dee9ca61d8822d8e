package tool

import "syscall"

// dieWithParent ends the shell of a command when the thread that started it ends, as it does by
// a kill -9 of wf. What the shell has started by then may go on.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
