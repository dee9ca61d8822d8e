package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcher carries out a launch and exits with the status of its command. Only the thread
// that starts the command is confined, and it ends at once: the launcher itself stays outside
// of the command's Landlock domain, so that the command can neither trace nor signal it.
func launcher() {
	// No process of the same user may look into the launcher, which can still do more
	// than the command.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		quit(125)
	}
	reports := os.NewFile(fdReport, "report")
	orders := os.NewFile(fdOrders, "orders")
	pid, l, err := start(orders)
	if err != nil {
		_, _ = reports.WriteString(report(err)) // there is no other way to report it
		quit(125)
	}
	if l.Probe {
		quit(0)
	}
	reports.Close()

	go func() {
		// A write error is as good as the end: either way no process waits for the command.
		_, _ = io.Copy(io.Discard, orders)
		l.signal(pid, unix.SIGTERM)
		time.Sleep(l.Grace)
		l.end()
		quit(128 + int(unix.SIGKILL))
	}()
	status := reap(pid)
	l.end()
	quit(status)
}

// report writes an error for stageError.
func report(err error) string {
	var errno syscall.Errno
	errors.As(err, &errno)
	return fmt.Sprintf("%d %s", int(errno), strings.TrimSuffix(err.Error(), ": "+errno.Error()))
}

// quit ends the launcher without what os.Exit does for tests and coverage.
func quit(status int) { syscall.Exit(status) }

func start(orders io.Reader) (int, launch, error) {
	var l launch
	// Whatever else was inherited is not for the command.
	if err := unix.CloseRange(3, ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 0, l, fmt.Errorf("close inherited files: %w", err)
	}
	if err := gob.NewDecoder(orders).Decode(&l); err != nil {
		return 0, l, fmt.Errorf("read orders: %w", err)
	}
	if l.Namespaces {
		if os.Getpid() != 1 {
			return 0, l, errors.New("the launcher is not in namespaces of its own")
		}
		if err := l.namespaces(); err != nil {
			return 0, l, err
		}
	} else {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return 0, l, fmt.Errorf("adopt orphans: %w", err)
		}
		l.Limits.Processes += threadsOf(os.Getuid()) // the kernel counts all of the user's
	}
	if err := l.enter(); err != nil {
		return 0, l, err
	}
	program, err := l.program()
	if err != nil {
		return 0, l, err
	}
	filter, err := l.filter()
	if err != nil {
		return 0, l, err
	}
	var pid int
	done := make(chan struct{})
	apart(func() {
		pid, err = l.exec(program, filter)
		close(done)
	})
	<-done
	return pid, l, err
}

// enter goes to the directory of the command, behind the mounts that its walls are made of. It lay in
// the workspace without links, and a link that is there now is refused.
func (l *launch) enter() error {
	fd, err := pin(l.Dir)
	if err != nil {
		return fmt.Errorf("start in %s: %w", l.Dir, err)
	}
	defer unix.Close(fd)
	if err := unix.Fchdir(fd); err != nil {
		return fmt.Errorf("start in %s: %w", l.Dir, err)
	}
	return nil
}

// apart runs f on a thread of its own that ends with it. The first thread of a process cannot
// end and stands for the whole of it, so it is never used.
func apart(f func()) {
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			apart(f)
			select {} // keeps the first thread
		}
		f()
	}()
}

// exec confines this thread and starts the command from it.
func (l *launch) exec(program string, filter []unix.SockFilter) (int, error) {
	if err := l.Limits.set(); err != nil {
		return 0, err
	}
	if err := dropCapabilities(l.Plain); err != nil {
		return 0, fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := l.landlock(); err != nil {
		return 0, err
	}
	if err := install(filter); err != nil {
		return 0, fmt.Errorf("install the filter of system calls: %w", err)
	}
	if l.Probe {
		return 0, nil
	}
	pid, err := syscall.ForkExec(program, l.Args, &syscall.ProcAttr{
		Env: l.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, err)
	}
	return pid, nil
}

// program finds the command in the PATH it will see.
func (l *launch) program() (string, error) {
	if l.Probe {
		return "", nil
	}
	if strings.Contains(l.Args[0], "/") {
		return l.Args[0], nil
	}
	for _, pair := range l.Env {
		path, ok := strings.CutPrefix(pair, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, l.Args[0])
			if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", l.Args[0], exec.ErrNotFound)
}

// set bounds this process and what it starts. The kernel holds root to no number of processes; a meter does.
func (l Limits) set() error {
	type limit struct {
		what  string
		which int
		max   uint64
	}
	limits := []limit{
		{"core files", unix.RLIMIT_CORE, 0},
		{"the size of files", unix.RLIMIT_FSIZE, l.FileSize},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
	}
	for _, limit := range limits {
		var had syscall.Rlimit
		if err := syscall.Getrlimit(limit.which, &had); err != nil {
			return fmt.Errorf("get the limit of %s: %w", limit.what, err)
		}
		n := min(limit.max, had.Max)
		if err := syscall.Setrlimit(limit.which, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("limit %s: %w", limit.what, err)
		}
	}
	return nil
}

// signal reaches everything in the pid namespace, or the process group where there is none.
func (l *launch) signal(pid int, sig syscall.Signal) {
	if l.Namespaces {
		_ = syscall.Kill(-1, sig) // ESRCH: all have ended
		return
	}
	_ = syscall.Kill(-pid, sig)
}

// reap waits for the command, burying orphans on the way, and gives its exit status.
func reap(pid int) int {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 125 // ECHILD: another goroutine has ended everything
		case got == pid && status.Signaled():
			return 128 + int(status.Signal())
		case got == pid && status.Exited():
			return status.ExitStatus()
		}
	}
}

// anyEnded waits until a child has ended, and reports whether there was any.
func anyEnded() bool {
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}

// end leaves nothing of the command. With namespaces the kernel sees to it when the launcher,
// the first process of its pid namespace, exits. Without them all descendants are children of
// the launcher, sooner or later, since it adopts orphans.
func (l *launch) end() {
	if l.Namespaces {
		return
	}
	for {
		children := processes()[os.Getpid()] // not what these started: its numbers may be those of others meanwhile
		for _, p := range children {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		for range max(1, len(children)) { // so many end; each look is at all of them
			if !anyEnded() {
				return
			}
		}
	}
}
