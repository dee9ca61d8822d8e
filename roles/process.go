package roles

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// How long a command is given.
const (
	// DefaultGrace is from SIGTERM to SIGKILL.
	DefaultGrace = 5 * time.Second
	// drainMax is how long output is still read once the command has ended: a background child
	// may hold the pipe open for ever.
	drainMax = time.Second
	// groupPoll is how often an ended command's group is looked at until its last member has
	// followed the SIGTERM.
	groupPoll = 20 * time.Millisecond
)

// An ending is how a process ended: by its exit status (128+n for signal n), or stopped.
type ending struct {
	code    int
	stopped bool
}

// run runs the command as the user, in its own process group, and waits for its end. What it starts in the
// background is left alone when it ends by itself, and ends with it when it is stopped. When ctx is done the
// group gets SIGTERM, and SIGKILL after the grace. An error means that it could not be started, or that its
// output could not be taken; then it was stopped too.
func (c Command) run(ctx context.Context) (ending, error) {
	// The command dies with the thread that started it (see DieWithParent).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	guard := &stopper{stop: stop}
	out, err := c.open(guard)
	if err != nil {
		return ending{}, err
	}
	cmd := exec.Command("sh", "-c", c.Line)
	cmd.Dir, cmd.Env = c.cwd, c.Env
	if c.Stdin != nil { // not a nil file in an interface
		cmd.Stdin = c.Stdin
	}
	cmd.Stdout, cmd.Stderr = out.write[0], out.write[len(out.write)-1]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	DieWithParent(cmd.SysProcAttr)
	err = cmd.Start()
	out.started()
	if err != nil {
		out.close()
		return ending{}, err
	}

	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	stopped := false
	select {
	case err = <-waited:
	case <-ctx.Done():
		stopped = true
		err = end(cmd.Process.Pid, c.Grace, waited)
	}
	out.drain()
	if c.Wholly {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nothing was left
	}
	if guard.err != nil {
		return ending{stopped: true}, guard.err
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return ending{stopped: stopped}, err
	}
	return ending{code: ExitCode(cmd.ProcessState), stopped: stopped}, nil
}

// end stops the group and gives what Wait gave.
func end(group int, grace time.Duration, waited <-chan error) error {
	kill := time.NewTimer(grace)
	defer kill.Stop()
	_ = syscall.Kill(-group, syscall.SIGTERM) // ESRCH: it has just ended by itself

	var err error
	select {
	case err = <-waited:
	case <-kill.C:
		_ = syscall.Kill(-group, syscall.SIGKILL)
		return <-waited
	}
	// The shell is gone; what it started has the rest of the grace.
	look := time.NewTicker(groupPoll)
	defer look.Stop()
	for groupLives(group) {
		select {
		case <-look.C:
		case <-kill.C:
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return err
		}
	}
	return err
}

// ExitCode is the exit status as a shell tells it: 128+n after signal n.
func ExitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// pipes carry the output of a process to its writers.
type pipes struct {
	read, write []*os.File
	copied      sync.WaitGroup
}

// open makes the pipes and starts reading them; a writer's error stops the process.
func (c Command) open(guard *stopper) (*pipes, error) {
	o := new(pipes)
	targets := []io.Writer{c.Stdout}
	if c.Stderr != nil {
		targets = append(targets, c.Stderr)
	}
	for _, to := range targets {
		r, w, err := os.Pipe()
		if err != nil {
			o.started()
			o.close()
			return nil, err
		}
		o.read, o.write = append(o.read, r), append(o.write, w)
		o.copied.Go(func() {
			_, _ = io.Copy(stopping{guard, to}, r) // until its end, or the deadline that drain sets
		})
	}
	return o, nil
}

// started closes our side of the ends that the process writes to.
func (o *pipes) started() { closeAll(o.write) }

// drain reads what is left, but not for ever.
func (o *pipes) drain() {
	late := time.AfterFunc(drainMax, func() {
		for _, r := range o.read {
			r.SetReadDeadline(time.Unix(1, 0))
		}
	})
	o.copied.Wait()
	late.Stop()
	o.close()
}

func (o *pipes) close() { closeAll(o.read) }

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
