package sandbox_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// over runs a command that would never end, and wants it to be ended by a limit.
func (s stage) over(what, line string) {
	s.t.Helper()
	var met []string
	s.policy.Met = func(text string) { met = append(met, text) }
	code, out := s.sh(line)
	if code != 137 || len(met) != 1 || !strings.Contains(met[0], " MB of "+what+", and its limit is") || !strings.Contains(met[0], "limits: {"+what+": BYTES}") {
		s.t.Errorf("%s: exit %d, %q: %s", line, code, met, out)
	}
}

// A command is ended when all of its processes together use more than its memory, however they hold it.
func TestACommandOverItsMemoryIsEnded(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.policy.Limits.Memory = 150 << 20
		s.over("memory", `WF_ATTACK=hog "$SELF"`)
		s.over("memory", `trap "" TERM; (WF_ATTACK=hog "$SELF" &) & sleep 1000 & wait; sleep 1000`)
		s.policy.Limits.Memory = 300 << 20
		s.over("memory", `WF_ATTACK=hog "$SELF" & WF_ATTACK=hog "$SELF" & wait`)
		if s.namespaces {
			s.over("memory", `head -c 400M /dev/zero > /dev/shm/file; sleep 1000`)
		}
	})
}

// A command is ended when what it may write grows by more than its disk, also by files without a name.
func TestACommandOverItsDiskIsEnded(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.write(filepath.Join(s.work, "old"), strings.Repeat("x", 30<<20))
		s.policy.Limits.Disk = 20 << 20
		s.over("disk", `head -c 40M /dev/zero > big; sleep 1000`)
		s.over("disk", `mkdir -p a/b; for i in 1 2 3 4 5; do head -c 8M /dev/zero > a/b/$i; done; sleep 1000`)
		s.over("disk", `head -c 40M /dev/zero > "$HOME/big"; sleep 1000`)
		s.over("disk", `exec 3> gone; rm gone; head -c 40M /dev/zero >&3; sleep 1000`)
	})
}

// What processes share is counted once.
func TestSharedMemoryIsCountedOnce(t *testing.T) {
	const size, each = 200 << 20, 4
	path := filepath.Join(t.TempDir(), "mapped")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	for range each {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "WF_ATTACK=map", "MAPPED="+path)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
		if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "ready") {
			t.Fatal(line, err)
		}
	}
	rough, exact := sandbox.MemoryBelow(os.Getpid(), 1<<40), sandbox.MemoryBelow(os.Getpid(), 1)
	if rough < each*size || exact < size || exact > rough/2 {
		t.Errorf("%d MB in all, of which %d MB are their own", rough>>20, exact>>20)
	}
}

func TestDiskIsWhatTheDiskHolds(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "wf-disk-")
	if err != nil {
		t.Skip("no /var/tmp: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, line := range []string{"truncate -s 1G sparse", "head -c 5M /dev/zero > file", "ln file hard", "ln -s / link", "mkfifo pipe", "mkdir closed"} {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if got := sandbox.DiskIn(dir, filepath.Join(dir, "none")); got < 5<<20 || got > 6<<20 {
		t.Errorf("%d bytes", got)
	}
}
