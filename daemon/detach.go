package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
)

// untilDriven waits until a process drives a new run, has driven it, or has ended before it could: so the
// next command does not find the run as one that has not started.
func untilDriven(ctx context.Context, s engine.Store, run protocol.RunID, first protocol.Seq, ended <-chan struct{}) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if driven, err := s.Driven(ctx, run); err != nil || driven {
			return err
		}
		if _, seq, err := s.Tip(ctx, run); err != nil || seq > first {
			return err
		}
		select {
		case <-tick.C:
		case <-ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Detach leaves a run to a process of its own, which trusts what this one was told to trust.
func Detach(ctx context.Context, u *compose.Setup, s store.Store, run protocol.RunID) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("detach: %w", err)
	}
	cmd := exec.Command(self, "resume", string(run), "--store", s.Name(), "--quiet", "--no-input")
	for _, name := range u.Options.Servers {
		cmd.Args = append(cmd.Args, "--trust-mcp", name)
	}
	for _, cid := range u.Trusted {
		cmd.Args = append(cmd.Args, "--trust", cid)
	}
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_, first, err := s.Tip(ctx, run)
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("detach run %s: %w", run, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in the run
		close(ended)
	}()
	return cmd.Process.Pid, untilDriven(ctx, s, run, first, ended)
}
