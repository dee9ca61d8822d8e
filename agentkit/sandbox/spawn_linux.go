package sandbox

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// flags are the namespaces for a policy: a command that may use the network shares that of wf.
func (f found) flags(p Policy) uintptr {
	if p.Network {
		return f.namespaces &^ unix.CLONE_NEWNET
	}
	return f.namespaces
}

// Descriptors of the launcher beside the standard ones.
const (
	fdOrders = 3 // a launch; afterwards its end says that wf wants the command to end, or is gone
	fdReport = 4 // what went wrong, closed without a word when the command has started
	fdLender = 5 // of a launch with Hosts: a socket for the listener that it lends
	// After these may come the layers of the launch, which the launcher holds until it ends.
)

// run starts the launcher, tells it what to do, and waits for its end.
func (l *launch) run(ctx context.Context, flags uintptr, stdout, stderr io.Writer) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	orders, lifeline, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer lifeline.Close()
	defer orders.Close()
	report, failures, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer report.Close()
	defer failures.Close()

	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{marker}, Env: []string{"GOMAXPROCS=2"}, Dir: "/",
		Stdout: stdout, Stderr: stderr, ExtraFiles: []*os.File{orders, failures},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Cloneflags: flags},
		WaitDelay:   DefaultGrace, // for what a killed launcher without namespaces leaves behind
	}
	if l.stdin != nil { // not a nil file in an interface
		cmd.Stdin = l.stdin
	}
	var lender *os.File
	if len(l.Hosts) > 0 {
		ours, theirs, err := socketPair()
		if err != nil {
			return 0, err
		}
		defer ours.Close()
		defer theirs.Close()
		lender, cmd.ExtraFiles = ours, append(cmd.ExtraFiles, theirs)
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, l.layers...)
	if l.view != nil {
		clone, err := l.view.Clone()
		if err != nil {
			return 0, err
		}
		defer clone.Close()
		l.Merged = 3 + len(cmd.ExtraFiles)
		cmd.ExtraFiles = append(cmd.ExtraFiles, clone, l.view.Held)
	}
	// A layer has a directory with mode 0, of the user's own.
	if err = asSelf(cmd, unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE); err == nil {
		err = l.begin(cmd)
	}
	orders.Close()
	failures.Close()
	if err != nil {
		return 0, err
	}
	usage := l.newMeter()
	sent := gob.NewEncoder(lifeline).Encode(l)
	failure, heard := io.ReadAll(report)
	var way *proxy
	if lender != nil && len(failure) == 0 && heard == nil {
		if way, heard = l.openWay(lender); heard != nil {
			lifeline.Close()
		}
	}
	defer way.close()
	ended, done := make(chan error, 1), make(chan struct{})
	go func() { ended <- cmd.Wait() }()
	defer close(done)
	usage.launcher = cmd.Process.Pid
	over := ""
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = l.halt(cmd, lifeline, l.Grace+DefaultGrace, ended)
	case over = <-usage.watch(done):
		grace := l.Grace + DefaultGrace
		if l.Namespaces {
			grace = 0 // whatever is in them ends with the launcher
		}
		err = l.halt(cmd, lifeline, grace, ended)
	}
	code, err := l.outcome(ctx, cmd, errors.Join(sent, heard), string(failure), err)
	if over != "" && err == nil {
		way.close() // it reports, too
		if l.met != nil {
			l.met(over)
		}
		code = 128 + int(unix.SIGKILL)
	}
	return code, err
}

// asSelf maps a process that begins in a user namespace to the user, and keeps for others than root what it may do there, which
// they lose when they exec. In no such namespace it changes nothing.
func asSelf(cmd *exec.Cmd, may ...uintptr) (err error) {
	a := cmd.SysProcAttr
	if a.Cloneflags&unix.CLONE_NEWUSER == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		a.AmbientCaps = may
	}
	a.UidMappings, a.GidMappings, err = identity()
	return err
}

// begin starts the launcher, which takes as long as the look at the machine that it then hears of.
func (l *launch) begin(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() { started <- cmd.Start() }()
	var looked error
	if l.look != nil {
		looked = l.look(l)
	}
	if err := <-started; err != nil {
		return fmt.Errorf("start the launcher: %w", err)
	}
	if looked != nil {
		_ = cmd.Process.Kill() // it has done nothing yet
		_ = cmd.Wait()
	}
	return looked
}

// halt asks the launcher to end the command, and ends both after a grace.
func (l launch) halt(cmd *exec.Cmd, lifeline *os.File, grace time.Duration, ended <-chan error) error {
	lifeline.Close()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		_ = cmd.Process.Kill() // it ends with everything in its pid namespace; an error says it just did
		return <-ended
	}
}

// outcome tells a command that ended from a launcher that could not start it.
func (l launch) outcome(ctx context.Context, cmd *exec.Cmd, pipes error, failure string, err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case failure != "":
		return 0, stageError(failure)
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return 0, err
	case pipes != nil:
		return 0, fmt.Errorf("the launcher ended before it started the command (%v): %w", cmd.ProcessState, pipes)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus) // of every Unix
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// stageError reads what the launcher reported: the number of a system error, then a text.
func stageError(report string) error {
	number, text, _ := strings.Cut(report, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n == 0 {
		return errors.New(report)
	}
	return fmt.Errorf("%s: %w", text, syscall.Errno(n))
}

// identity maps the user to himself, and for root everybody: a workspace may well belong to
// another user than the root of a container.
func identity() (users, groups []syscall.SysProcIDMap, err error) {
	if os.Geteuid() != 0 {
		return []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
			[]syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}, nil
	}
	if users, err = sameIDs("/proc/self/uid_map"); err != nil {
		return nil, nil, err
	}
	groups, err = sameIDs("/proc/self/gid_map")
	return users, groups, err
}

func sameIDs(file string) ([]syscall.SysProcIDMap, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []syscall.SysProcIDMap
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var first, outside, size int
		if _, err := fmt.Sscan(lines.Text(), &first, &outside, &size); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return out, nil
}
