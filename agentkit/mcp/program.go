package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
)

const (
	grace     = time.Second // from the end of stdin to SIGTERM, and from there to SIGKILL
	stderrMax = 2_000       // bytes of what a program said last
)

// A program is a server that was started, with all that it starts.
type program struct {
	stdin, stdout *os.File     // our ends
	given         *os.File     // the other end of stdin, so that what the program did not read can be counted
	written       atomic.Int64 // bytes that went into that, or are on their way
	unread        int64        // of those, once it is stopped
	stderr        *lastWords
	note          string // for people, behind what it said last
	group         int    // of its processes; 0 for a confined one

	ended      chan struct{} // closed when all of it has ended
	failed     error         // why it could not be started, where that is known only when it has ended
	term, kill func()
	once       sync.Once
	drained    bool // what it had written when it ended was waited for, see Read
}

// probe is replaced in tests.
var probe = sandbox.Probe

// launch starts the program of a server where its place says: within walls, or as the user. env is on top
// of what all commands have. What the machine cannot confine is not started, unless it is a sandbox itself.
func (p *Pool) launch(s protocol.MCPServer, at Place, env []string) (*program, error) {
	root := p.root()
	if !at.Confined {
		return startProgram(at.program, s.Command, append(outside(root, sandbox.Environ()), env...), root, p.Dir)
	}
	policy := sandbox.Policy{Workspace: root, At: p.At, Private: p.Private, Dir: p.Dir, Environ: env, Grace: grace, Lasting: true}
	policy.Trust = protocol.Trust{Run: p.Run, Workflow: p.Workflow}
	for _, v := range s.Env { // a fixed value can be a key, too
		policy.Trust.Secrets = append(policy.Trust.Secrets, s.Name+"/"+v.Name)
	}
	policy.Network, policy.Hosts = s.Reach()
	if p.Confine != nil {
		var err error
		if policy.Grants, err = p.Confine(); err != nil {
			return nil, err
		}
	}
	if why := probe().Lacks(policy); why != "" {
		if p.Inside != nil && p.Inside() {
			return startProgram(at.program, s.Command, append(sandbox.Environ(), env...), root, p.Dir)
		}
		return nil, fmt.Errorf("it is to be confined, since %s, and %w: %s; say  sandbox: off  on the server, and trust it, to start it as you", at.Why(), sandbox.ErrUnavailable, why)
	}
	if at.program != "" {
		policy.Grants.Read = append(slices.Clip(policy.Grants.Read), at.program)
	}
	out, err := startConfined(policy, s.Command)
	if err == nil {
		out.note = fmt.Sprintf(" %s It is confined, since %s; network: or sandbox: off on the server, or sandbox: {read: [PATH]} in a config, opens what it needs", probe().Describe(policy), at.Why())
	}
	return out, err
}

// pipes connect a program with this process.
func pipes() (p *program, theirOut *os.File, err error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		in.Close()
		return nil, nil, err
	}
	return &program{stdin: in, given: theirIn, stdout: out, stderr: &lastWords{}, ended: make(chan struct{})}, theirOut, nil
}

// startConfined starts a program within walls. The walls stand until all of it has ended; the launcher ends
// it when this process is gone.
func startConfined(policy sandbox.Policy, command []string) (*program, error) {
	p, theirOut, err := pipes()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p.term, p.kill = stop, stop // its launcher has the same grace
	policy.Stdin = p.given
	policy.Met = func(text string) { _, _ = fmt.Fprintln(p.stderr, text) }
	go func() {
		code, err := sandbox.Run(ctx, policy, command, theirOut, p.stderr)
		theirOut.Close()
		switch {
		case errors.Is(err, protocol.ErrLeft):
			p.failed = fmt.Errorf("%s: %w", command[0], err)
		case ctx.Err() != nil: // it was stopped
		case err != nil:
			p.failed = fmt.Errorf("start %s: %w", command[0], err)
		case code != 0:
			p.failed = fmt.Errorf("%s ended with status %d", command[0], code)
		}
		close(p.ended)
	}()
	return p, nil
}

// startProgram starts a program as the user, in a process group of its own. file is where it lies. A goroutine
// with a thread of its own waits for it: where the system can, the program dies with that thread, and so with
// this process.
func startProgram(file string, command, env []string, root, dir string) (*program, error) {
	if file == "" {
		return nil, fmt.Errorf("start %s: %w", command[0], exec.ErrNotFound)
	}
	if strings.Contains(command[0], "/") {
		file = command[0] // from the directory that is opened, whatever its path leads to by then
	}
	cwd, err := workspace.Enter(root, dir)
	if err != nil {
		return nil, fmt.Errorf("start %s in its directory: %w", command[0], err)
	}
	defer cwd.Close()
	p, theirOut, err := pipes()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: file, Args: command, Dir: cwd.Path, Env: env, Stdin: p.given, Stdout: theirOut, Stderr: p.stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, WaitDelay: grace}
	roles.DieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		err := cmd.Start()
		theirOut.Close()
		started <- err
		if err == nil {
			_ = cmd.Wait()                                      // how it ended is of no interest: that it did, its client finds out
			_ = p.stdout.SetReadDeadline(time.Now().Add(grace)) // see Read
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		p.stdin.Close()
		p.given.Close()
		p.stdout.Close()
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	p.group = cmd.Process.Pid
	p.term = func() { _ = syscall.Kill(-p.group, syscall.SIGTERM) }
	p.kill = func() { _ = syscall.Kill(-p.group, syscall.SIGKILL) } // ESRCH: nothing is left
	return p, nil
}

// Read reads its stdout. The end of the program is the end of that, also where something that it started has the stream
// still: a call would wait for an answer until its time is over.
func (p *program) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && !p.drained { // it has ended, and what it wrote before that may still be there
		p.drained = true // once: what it started may write for ever
		_ = p.stdout.SetReadDeadline(time.Now().Add(grace / 10))
		n, err = p.stdout.Read(b)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// stop ends the program and whatever it started.
func (p *program) stop() {
	p.once.Do(func() {
		p.stdin.Close()
		wait := time.NewTimer(grace)
		defer wait.Stop()
		select {
		case <-p.ended:
		case <-wait.C:
			p.term()
			wait.Reset(grace)
			select {
			case <-p.ended:
			case <-wait.C:
			}
		}
		p.kill()
		<-p.ended
		p.stdout.Close()
		p.unread = drain(p.given)
		p.given.Close()
	})
}

// drain takes out what lies in a pipe, and tells how many bytes that is. It waits for none: what is left of the program may
// have the other end. What cannot be read counts as read by the program.
func drain(f *os.File) (n int64) {
	fd := int(f.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return 0
	}
	for buf := make([]byte, 64<<10); ; {
		some, err := syscall.Read(fd, buf)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || some <= 0:
			return n
		default:
			n += int64(some)
		}
	}
}

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if over := len(w.buf) - stderrMax; over > 0 {
		w.buf = append(w.buf[:0], w.buf[over:]...)
	}
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ToValidUTF8(string(w.buf), "�")
}
