package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"wf/agentkit/sandbox"
)

// alive makes a FIFO in the workspace: whoever holds its write end lives, and the reader sees
// the end when the last is gone.
func (s stage) alive(name string) *os.File {
	s.t.Helper()
	path := filepath.Join(s.work, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	return f
}

// dead waits until nobody holds the FIFO any more, which must have said that it was up.
func dead(t *testing.T, f *os.File) {
	t.Helper()
	if said, err := io.ReadAll(f); err != nil || !strings.HasPrefix(string(said), "up\n") {
		t.Errorf("it said %q (%v)", said, err)
	}
}

func TestExitStatusAndStreams(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		for line, want := range map[string]int{"true": 0, "exit 3": 3, "kill -9 $$": 137, "kill -TERM $$": 143, "no-such-command": 127} {
			if code, out := s.sh(line); code != want {
				t.Errorf("%s: exit %d: %s", line, code, out)
			}
		}
		var out, errs bytes.Buffer
		if _, err := s.run(t.Context(), s.policy, []string{"sh", "-c", "cat; echo a; echo b >&2"}, &out, &errs); err != nil || out.String() != "a\n" || errs.String() != "b\n" {
			t.Errorf("%q %q (%v)", out.String(), errs.String(), err)
		}
		if _, err := s.run(t.Context(), s.policy, []string{"no-such-program"}, nil, nil); err == nil || !strings.Contains(err.Error(), "no-such-program") {
			t.Errorf("got %v", err)
		}
	})
}

func TestNothingOutlivesTheCommand(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		background, daemon := s.alive("background"), s.alive("daemon")
		s.works(`mkfifo one two
			sh -c 'exec 3> background; echo up >&3; echo > one; sleep 1000' & read line < one
			setsid sh -c '(exec 3> daemon; echo up >&3; trap "" TERM HUP; echo > two; sleep 1000) &' & read line < two`)
		dead(t, background)
		dead(t, daemon)
	})
}

func TestACommandThatIsDeafToSIGTERMEnds(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		f := s.alive("deaf")
		ctx, cancel := context.WithCancel(t.Context())
		out := firstWrite(cancel)
		_, err := s.run(ctx, s.policy, []string{"sh", "-c", `exec 3> deaf; echo up >&3; trap '' TERM; echo started; while :; do sleep 1; done`}, out, nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		dead(t, f)
	})
}

// firstWrite calls f at the first write.
type firstWrite func()

func (f firstWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestACommandThatHearsSIGTERMMayTidyUp(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.run(ctx, s.policy, []string{"sh", "-c", `trap 'echo bye > tidy; exit' TERM; echo started; while :; do sleep 0.01; done`}, firstWrite(cancel), nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if !s.exists(filepath.Join(s.work, "tidy")) {
			t.Error("it had no time")
		}
	})
}

// TestAKilledParentLeavesNothing kills the process that called Run, and then only the launcher.
func TestAKilledParentLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		f := s.alive("life")
		parent := exec.Command(os.Args[0], "-test.run=^TestHelperRuns$")
		parent.Env = append(os.Environ(), "WF_HELPER="+s.work)
		if !s.namespaces {
			parent.Env = append(parent.Env, "WF_HELPER_NONE=1")
		}
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("started"))); err != nil {
			t.Fatal(err)
		}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = parent.Wait() // it was killed
		dead(t, f)
	})
}

func TestHelperRuns(t *testing.T) {
	work := os.Getenv("WF_HELPER")
	if work == "" {
		t.Skip("only for TestAKilledParentLeavesNothing")
	}
	run := sandbox.Run
	if os.Getenv("WF_HELPER_NONE") != "" {
		run = sandbox.RunWithoutNamespaces
	}
	_, err := run(t.Context(), sandbox.Policy{Workspace: work}, []string{"sh", "-c", `(setsid sh -c 'trap "" TERM; exec 3> life; echo up >&3; echo started; sleep 1000' &) ; sleep 1000`}, os.Stdout, nil)
	t.Error(err)
}

func TestAKilledLauncherLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		if !s.namespaces {
			t.Skip("needs a pid namespace")
		}
		f := s.alive("life")
		code, err := s.run(t.Context(), s.policy, []string{"sh", "-c", `setsid sh -c 'exec 3> life; echo up >&3; echo started; sleep 1000' & sleep 1000`}, firstWrite(func() { killLauncher(t) }), nil)
		if err != nil || code != 137 {
			t.Errorf("got %d, %v", code, err)
		}
		dead(t, f)
	})
}

// killLauncher kills the child of this process that is a launcher.
func killLauncher(t *testing.T) {
	names, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		pids, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that has ended
		}
		for _, pid := range strings.Fields(string(pids)) {
			if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.HasPrefix(string(line), "wf:sandbox") {
				if err := exec.Command("kill", "-9", pid).Run(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestTheEnvironmentIsAnAllowList(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		for _, name := range []string{"OPENAI_API_KEY", "SSH_AUTH_SOCK", "WHATEVER"} {
			t.Setenv(name, "leak")
		}
		t.Setenv("LANG", "C.UTF-8")
		s.policy.Environ = append(s.policy.Environ, "GIVEN=yes\xff")
		env := s.works("env; cat /proc/self/environ | tr '\\0' '\\n'; cat")
		for _, want := range []string{"LANG=C.UTF-8", "GIVEN=yes\xff", "PATH=", "TMPDIR=" + s.home, "HOME=" + s.home + "/.cache/"} {
			if !strings.Contains(env, want) {
				t.Errorf("%s is missing in %q", want, env)
			}
		}
		if strings.Contains(env, "leak") || strings.Contains(env, "WF_") {
			t.Errorf("too much in %q", env)
		}
	})
}

func TestLimitsHold(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.policy.Limits = sandbox.Limits{FileSize: 1 << 20, OpenFiles: 50, Processes: 40}
		if got := s.works("ulimit -c; ulimit -n; ulimit -f"); got != "0\n50\n2048" {
			t.Errorf("limits are %q", got)
		}
		if code, _ := s.sh("head -c 2000000 /dev/zero > big"); code == 0 {
			t.Error("a large file was written")
		}
		s.denied("ulimit -n 100 2>&1 || { echo Operation not permitted; false; }")
	})
}

// Processes are bounded in each tier, for root by samples; below the limit nothing is said.
func TestF417ProcessesAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		var met []string
		s.policy.Met = func(text string) { met = append(met, text) }
		s.policy.Limits.Processes = 100
		const many = "i=0; while [ $i -lt %d ]; do sleep %s & i=$((i+1)); done; wait; echo ended"
		if code, out := s.sh(fmt.Sprintf(many, 60, "0.6")); code != 0 || !strings.Contains(out, "ended") || len(met) != 0 {
			t.Errorf("60 processes: exit %d, %q: %s", code, met, out)
		}
		code, out := s.sh(fmt.Sprintf(many, 1000, "1000"))
		forbidden := os.Geteuid() != 0 && strings.Contains(out, "Cannot fork")
		if ended := code == 137 && len(met) == 1 && strings.Contains(met[0], "its limit is 100; sandbox: {limits: {processes: NUMBER}}"); !ended && !forbidden {
			t.Errorf("1,000 processes: exit %d, %q: %s", code, met, out)
		}
		s.policy.Limits.Processes = 2000 // to end them takes no look at all for each
		begun := time.Now()
		code, out = s.sh(`perl -e 'for (1..3000) { defined(my $p = fork) or die "Cannot fork: $!"; if (!$p) { sleep 1000; exit } } sleep 1000'`)
		if took := time.Since(begun); code == 0 || took > time.Minute {
			t.Errorf("3,000 processes: exit %d after %s: %s", code, took, out)
		}
	})
}

func TestInheritedFilesAreClosed(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		secret, err := os.Open(filepath.Join(s.home, ".ssh/id"))
		if err != nil {
			t.Fatal(err)
		}
		defer secret.Close()
		leaked, err := syscall.Dup(int(secret.Fd())) // not closed on exec
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(leaked)
		if got := s.works(`WF_ATTACK=descriptors "$SELF"`); got != "0 /dev/null\n1 pipe\n2 pipe" {
			t.Errorf("open are %q", got)
		}
	})
}

func TestAWorkspaceThatHoldsTheHomeIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		for _, dir := range []string{s.home, filepath.Dir(s.home), "/"} {
			_, err := s.run(t.Context(), sandbox.Policy{Workspace: dir}, []string{"true"}, nil, nil)
			if err == nil || !strings.Contains(err.Error(), "home directory") {
				t.Errorf("%s: %v", dir, err)
			}
		}
	})
}
