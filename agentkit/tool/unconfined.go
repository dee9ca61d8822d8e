package tool

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"wf/agentkit/sandbox"
	"wf/roles"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// grace is how long a stopped command has between SIGTERM and SIGKILL, and how long its output
// is still read after it has ended.
const grace = time.Second

// unconfined runs a command for a role that says "sandbox: off": in its own process group,
// with which what it started ends, and with no more of the environment than others get.
func unconfined(ctx context.Context, at Workspace, line string, stdout, stderr io.Writer) (int, error) {
	cwd, err := workspace.Enter(at.root(), at.Dir)
	if err != nil {
		return 0, err
	}
	defer cwd.Close()
	watch, err := appear.Of(at.root())
	if err != nil {
		return 0, err
	}
	span := watch.Begin()
	defer func() { at.appeared(span.End()) }()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = cwd.Path
	cmd.Env = append(append(sandbox.Environ(), "PWD="+at.Dir), at.Environ...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The command dies with the thread that starts it (see roles.DieWithParent).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	roles.DieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace

	if err := cmd.Start(); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	// What the command left behind ends with it; ESRCH says that nothing was.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && ctx.Err() == nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, err
	}
	return roles.ExitCode(cmd.ProcessState), nil
}
