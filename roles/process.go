package roles

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
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

// A process is a command in its own process group. What it starts in the background is left
// alone when it ends by itself, and ends with it when it is stopped.
type process struct {
	cmd    *exec.Cmd
	grace  time.Duration
	stdout io.Writer // called from one goroutine for both streams
	stderr io.Writer // nil joins it to stdout
}

// An ending is how a process ended: by its exit status (128+n for signal n), or stopped.
type ending struct {
	code    int
	stopped bool
}

// run starts the command and waits for its end. When ctx is done the group gets SIGTERM, and
// SIGKILL after the grace. An error means that it could not be started, or that its output
// could not be taken; then it was stopped too.
func (p process) run(ctx context.Context) (ending, error) {
	// The command dies with the thread that started it (see DieWithParent).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, err := p.open(stop)
	if err != nil {
		return ending{}, err
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	DieWithParent(p.cmd.SysProcAttr)
	err = p.cmd.Start()
	out.started()
	if err != nil {
		out.close()
		return ending{}, err
	}

	waited := make(chan error, 1)
	go func() { waited <- p.cmd.Wait() }()
	stopped := false
	select {
	case err = <-waited:
	case <-ctx.Done():
		stopped = true
		err = p.end(waited)
	}
	out.drain()
	if out.err != nil {
		return ending{stopped: true}, out.err
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return ending{stopped: stopped}, err
	}
	return ending{code: ExitCode(p.cmd.ProcessState), stopped: stopped}, nil
}

// end stops the group and gives what Wait gave.
func (p process) end(waited <-chan error) error {
	group := -p.cmd.Process.Pid
	kill := time.NewTimer(p.grace)
	defer kill.Stop()
	_ = syscall.Kill(group, syscall.SIGTERM) // ESRCH: it has just ended by itself

	var err error
	select {
	case err = <-waited:
	case <-kill.C:
		_ = syscall.Kill(group, syscall.SIGKILL)
		return <-waited
	}
	// The shell is gone; what it started has the rest of the grace.
	look := time.NewTicker(groupPoll)
	defer look.Stop()
	for groupLives(-group) {
		select {
		case <-look.C:
		case <-kill.C:
			_ = syscall.Kill(group, syscall.SIGKILL)
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
	chunks      chan chunk
	done        chan struct{}
	err         error // of a writer; set before done is closed
}

type chunk struct {
	to io.Writer
	p  []byte
}

// open makes the pipes and starts reading them; a writer's error stops the process.
func (p process) open(stop context.CancelCauseFunc) (*pipes, error) {
	o := &pipes{chunks: make(chan chunk), done: make(chan struct{})}
	targets := []io.Writer{p.stdout}
	if p.stderr != nil {
		targets = append(targets, p.stderr)
	}
	for range targets {
		r, w, err := os.Pipe()
		if err != nil {
			o.started()
			o.close()
			return nil, err
		}
		o.read, o.write = append(o.read, r), append(o.write, w)
	}
	p.cmd.Stdout, p.cmd.Stderr = o.write[0], o.write[len(o.write)-1]

	ended := make(chan struct{}, len(targets))
	for i, to := range targets {
		go func() {
			o.copy(o.read[i], to)
			ended <- struct{}{}
		}()
	}
	go func() {
		for range targets {
			<-ended
		}
		close(o.chunks)
	}()
	go func() {
		defer close(o.done)
		for c := range o.chunks {
			if o.err != nil {
				continue
			}
			if _, err := c.to.Write(c.p); err != nil {
				o.err = err
				stop(err)
			}
		}
	}()
	return o, nil
}

// copy hands on what r gives until its end, or until the deadline that drain sets.
func (o *pipes) copy(r *os.File, to io.Writer) {
	for {
		buf := make([]byte, 32<<10)
		n, err := r.Read(buf)
		if n > 0 {
			o.chunks <- chunk{to, buf[:n]}
		}
		if err != nil {
			return // io.EOF, or the deadline: no other error leaves anything to read
		}
	}
}

// started closes our side of the ends that the process writes to.
func (o *pipes) started() {
	for _, w := range o.write {
		w.Close()
	}
}

// drain reads what is left, but not for ever.
func (o *pipes) drain() {
	late := time.AfterFunc(drainMax, func() {
		for _, r := range o.read {
			r.SetReadDeadline(time.Unix(1, 0))
		}
	})
	<-o.done
	late.Stop()
	o.close()
}

func (o *pipes) close() {
	for _, r := range o.read {
		r.Close()
	}
}
