package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	oddCalls["it asks in a call, and ends"] = func(call string) {
		for i := range 100 {
			fmt.Printf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`+"\n", i)
		}
		for n := 0; n < 2*len(call); { // the answers lie in the pipe, and stay there
			var err error
			if n, err = unix.IoctlGetInt(0, unix.TIOCINQ); err != nil {
				panic(err)
			}
		}
		os.Exit(0)
	}
	oddCalls["its input is held open"] = func(string) {
		in, err := os.OpenFile("/proc/self/fd/0", os.O_RDWR, 0)
		if err != nil {
			panic(err)
		}
		child := exec.Command("sleep", "1000")
		child.Stdin, child.SysProcAttr = in, &syscall.SysProcAttr{Setsid: true} // it outlives the group
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stderr, "child", child.Process.Pid)
		os.Exit(0)
	}
}

// What a program has not read behind a call says nothing of the call: it read that, and may have performed it.
func TestACallThatWasReadIsNotMadeAgainWhateverLiesBehindIt(t *testing.T) {
	p, _, starts := odd(t, "it asks in a call, and ends")
	p.calling = 20 * time.Second
	if r := call(t, p, "say", `{"text":"a"}`); !strings.Contains(r.Content, "ended during the call, its outcome is unknown") || starts() != 1 {
		t.Errorf("gives %q, started %d times", r.Content, starts())
	}
}

// Of what a program started something may outlive it, and have both ends of its stdin.
func TestAStdinThatIsHeldOpenHoldsNobodyUp(t *testing.T) {
	p, _, _ := odd(t, "its input is held open")
	p.calling = 20 * time.Second
	if _, err := p.Tools(t.Context(), "mcp:t/*"); err != nil {
		t.Fatal(err)
	}
	proc := p.connections["t"].proc
	said := make(chan string)
	go func() { said <- call(t, p, "say", `{"text":"a"}`).Content }()
	var got string
	select {
	case got = <-said:
	case <-time.After(15 * time.Second):
		t.Error("it is waited for")
	}
	_, pid, _ := strings.Cut(strings.TrimSpace(proc.stderr.String()), "child ")
	if child, err := strconv.Atoi(pid); err != nil || child <= 1 {
		t.Fatalf("it says %q", pid)
	} else if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if got == "" {
		got = <-said
	}
	if !strings.Contains(got, "ended during the call, its outcome is unknown") {
		t.Errorf("gives %q", got)
	}
}
