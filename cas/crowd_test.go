package cas_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wf/cas"
	"wf/files/filestest"
	"wf/protocol"
)

// Two hundred processes that want one store at once all have their turn, however slow its disk is, and those that wait long say so.
func TestF505TwoHundredProcessesAllHaveTheirTurn(t *testing.T) {
	const crowd = 200
	dir := filepath.Join(t.TempDir(), "store")
	if err := openStore(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	told := 0
	for i := range crowd {
		cmd, _, out := start(t, "slow", dir, fmt.Sprint("r", i), "1")
		all.Go(func() {
			lines := finish(t, cmd, out)
			if n := len(lines); n == 0 || strings.HasPrefix(lines[n-1], "told") {
				t.Errorf("process %d has no commit: %q", i, lines)
			}
			for _, l := range lines {
				mu.Lock()
				if strings.HasPrefix(l, "told waiting for the store "+dir+", held by ") && strings.Contains(l, "process") {
					told++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	s := openStore(t, dir)
	defer s.Close()
	heads, err := s.Heads(t.Context(), "run/")
	if err != nil || len(heads) != crowd {
		t.Errorf("%d runs of %d: %v", len(heads), crowd, err)
	}
	if told < crowd/4 {
		t.Errorf("%d of %d processes say that they wait", told, crowd)
	}
}

// What becomes of a commit behind each kind of process that has the store.
func TestACommitBehindEachKindOfHolder(t *testing.T) {
	signal := func(s syscall.Signal) func(*testing.T, *exec.Cmd) {
		return func(t *testing.T, cmd *exec.Cmd) {
			if err := cmd.Process.Signal(s); err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		how     string                      // the holder keeps the store
		first   func(*testing.T, *exec.Cmd) // what is done to it before the commit
		then    func(*testing.T, *exec.Cmd) // and once the user was told of the wait; nil for one that is waited for no longer
		says    string
		refused bool
	}{
		"working":                    {how: "hold", says: "held by process %d"},
		"reading":                    {how: "read", says: "held by process %d"},
		"killed":                     {how: "hold", then: signal(syscall.SIGKILL), says: "held by process %d"},
		"stopped, and goes on":       {how: "hold", first: signal(syscall.SIGSTOP), then: signal(syscall.SIGCONT), says: "held by process %d (stopped)"},
		"stopped":                    {how: "hold", first: signal(syscall.SIGSTOP), says: "process %d (stopped)", refused: true},
		"stopped on its way":         {how: "turn", first: signal(syscall.SIGSTOP), says: "process %d (stopped)", refused: true},
		"stopped on its way, killed": {how: "turn", first: signal(syscall.SIGSTOP), then: signal(syscall.SIGKILL), says: "held by process %d (stopped)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan error, 1)
			dir := made(t)
			wait := patience
			if c.refused {
				wait = 200 * time.Millisecond
			}
			cmd, let := holder(t, c.how, dir)
			if c.first != nil {
				c.first(t, cmd)
				filestest.Until(t, "the holder is stopped", func() bool { return cas.StoppedForTest(cmd.Process.Pid) }, nil)
			}
			done := make(chan error, 1)
			go func() {
				s, err := cas.Open(context.Background(), dir, cas.Options{Wait: wait, Warn: func(err error) {
					select {
					case told <- err:
					default:
					}
				}})
				if err == nil {
					err = errors.Join(s.Commit(context.Background(), cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("late"))}}), s.Close())
				}
				done <- err
			}()
			says := fmt.Sprintf(c.says, cmd.Process.Pid)
			if c.refused {
				err := <-done
				if hint := protocol.HintOf(err); !errors.Is(err, protocol.ErrBusy) || !strings.Contains(err.Error(), says) || !strings.Contains(hint, fmt.Sprint("kill -CONT ", cmd.Process.Pid)) {
					t.Errorf("want busy, %q; have %v (%s)", says, err, hint)
				}
				signal(syscall.SIGCONT)(t, cmd)
				let()
				return
			}
			if err := <-told; !strings.Contains(err.Error(), says) {
				t.Errorf("the user is told %q, want %q", err, says)
			}
			switch {
			case c.then == nil:
				let()
			case name == "stopped, and goes on":
				c.then(t, cmd)
				let()
			default:
				c.then(t, cmd)
				_ = cmd.Wait() // killed
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// Nobody waits for a store that is held for a commit whose caller has left: Close returns.
func TestACommitThatWasGivenUpIsWaitedForNoLonger(t *testing.T) {
	dir := made(t)
	s := openStore(t, dir)
	_, let := holder(t, "hold", dir)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Commit(ctx, cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("x"))}}) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	let()
}
