package guard

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// With WF_TEST_DIAL this binary is a process that connects to a socket, and says what it hears.
func init() {
	if name, ok := os.LookupEnv("WF_TEST_DIAL"); ok {
		c, err := net.Dial("unix", name)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		b, _ := io.ReadAll(c) // what was heard is the result
		fmt.Printf("heard %q", b)
		os.Exit(0)
	}
}

// A peer of the same user outside is served. One of another user, and one of the same user in a user
// namespace or a pid namespace of its own, is not, though it can connect.
func TestPeersOfOtherUsersAndNamespacesAreRefused(t *testing.T) {
	var log strings.Builder
	name := fmt.Sprintf("@wf-test-peers-%d", os.Getpid())
	bound, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l := OwnPeers(bound, slog.New(slog.NewTextHandler(&log, nil)))
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, err = io.WriteString(c, "welcome")
			if err := errors.Join(err, c.Close()); err != nil {
				t.Error(err)
			}
		}
	}()
	process := func(flags uintptr) string {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WF_TEST_DIAL="+name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if flags&syscall.CLONE_NEWUSER != 0 {
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) {
			t.Logf("no such namespaces here: %v", err)
			return `heard ""`
		}
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := process(0); got != `heard "welcome"` {
		t.Errorf("the own user: %s", got)
	}
	for what, flags := range map[string]uintptr{"a user namespace": syscall.CLONE_NEWUSER, "user and pid namespaces": syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID} {
		if got := process(flags); got != `heard ""` {
			t.Errorf("%s: %s", what, got)
		}
	}
	if os.Geteuid() == 0 {
		if got := process(syscall.CLONE_NEWPID); got != `heard ""` {
			t.Errorf("a pid namespace: %s", got)
		}
		if got := dialAs(t, 54321, name); got != "" {
			t.Errorf("another user heard %q", got)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-served
	if os.Geteuid() == 0 && !strings.Contains(log.String(), "it is of user 54321") {
		t.Errorf("the log does not name the other user: %s", log.String())
	}
}

// dialAs connects as another user, and gives what that one hears.
func dialAs(t *testing.T, uid int, name string) string {
	t.Helper()
	heard := make(chan string, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
			t.Error(e)
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: name})
		}
		if err != nil {
			t.Error(err)
		}
		b := make([]byte, 100)
		n, _ := unix.Read(fd, b) // 0 at the end
		unix.Close(fd)
		heard <- string(b[:max(0, n)])
	}()
	return <-heard
}
