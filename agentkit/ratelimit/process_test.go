package ratelimit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"wf/files/filestest"
)

// TestMain is also another process: one that takes what is granted within its first asking, says so, and holds it; then it
// waits in the queue until it is killed.
func TestMain(m *testing.M) {
	dir, n := os.Getenv("RATELIMIT_DIR"), 0
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Sscan(os.Getenv("RATELIMIT_TAKES"), &n)
	a := Open(dir, "p", "account", Limits{InFlight: 3})
	for range n {
		if err := take(a); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("holds", n)
	_ = take(a) // it waits, or holds one more
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// other starts another process that takes n grants of three, and returns when it has them.
func other(t *testing.T, dir string, n int) (kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe)
	c.Env = append(os.Environ(), "RATELIMIT_DIR="+dir, "RATELIMIT_TAKES="+strconv.Itoa(n))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "holds") {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
		_ = in.Close()
	}
}

// The kernel frees what a process held that was killed, in flight and in the queue.
func TestKillingAProcessFreesItsPlaces(t *testing.T) {
	dir := t.TempDir()
	holds := other(t, dir, 3) // and one more waits in the queue
	defer holds()
	a := Open(dir, "p", "account", Limits{InFlight: 3})
	waits := func(n int) {
		t.Helper()
		err := filestest.Await(t.Context(), dir, func() bool {
			s, err := a.Look()
			if err != nil {
				t.Fatal(err)
			}
			if s.InFlight > 3 {
				t.Fatalf("%+v", s)
			}
			return len(s.Waiting) == n
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	waits(1)
	got := make(chan error, 3)
	for range 3 {
		go func() { got <- take(a) }()
	}
	waits(2)
	if s, err := a.Look(); err != nil || s.InFlight != 3 || len(s.Flying) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	holds() // kill -9
	for range 3 {
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
	if s, err := a.Look(); err != nil || s.InFlight != 3 || s.Flying[0].PID != os.Getpid() {
		t.Errorf("%+v, %v", s, err)
	}
}
