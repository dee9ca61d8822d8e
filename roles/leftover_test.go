package roles

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/protocol"
)

// What killed processes left is removed; what a living one wrote, and what is no file of ours, stays.
func TestWhatKilledProcessesLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	in, err := openInput(protocol.Turn{Role: protocol.Role{Stdin: &protocol.Stdin{Text: "x"}}, Stdin: &protocol.Stdin{Text: "mine"}}, turnJSON{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wf-turn.1.json") // nobody holds a lock on them
	write("wf-stdin.2")
	write("wf-turned.json")
	if err := os.Symlink("wf-turned.json", filepath.Join(dir, "wf-turn.3.json")); err != nil {
		t.Fatal(err)
	}
	sweepInputs(dir)
	have := map[string]bool{}
	for _, path := range globbed(t, dir) {
		have[filepath.Base(path)] = true
	}
	for _, stays := range []string{filepath.Base(in.turn), filepath.Base(in.made[1].Name()), "wf-turned.json", "wf-turn.3.json"} {
		if !have[stays] {
			t.Errorf("%s is gone", stays)
		}
	}
	if len(have) != 4 {
		t.Errorf("there are %v", have)
	}
	in.close()
	if left := globbed(t, dir); len(left) != 2 {
		t.Errorf("when it has ended: %v", left)
	}
}

func globbed(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The same with a process that is killed while its command reads.
func TestAKilledProcessLeavesNothingForLong(t *testing.T) {
	dir := t.TempDir()
	if os.Getenv("WF_TEST_LEAVES") != "" {
		in, err := openInput(protocol.Turn{}, turnJSON{})
		if err != nil {
			t.Fatal(err)
		}
		defer in.close() // what nothing refers to is closed when memory is collected
		os.Stdout.WriteString("turn " + in.turn + "\n")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAKilledProcessLeavesNothingForLong$")
	cmd.Env = append(os.Environ(), "WF_TEST_LEAVES=1", "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	turn := ""
	for lines := bufio.NewScanner(out); turn == "" && lines.Scan(); {
		turn, _ = strings.CutPrefix(lines.Text(), "turn ")
		if turn == lines.Text() {
			turn = ""
		}
	}
	sweepInputs(dir)
	if _, err := os.Stat(turn); err != nil {
		t.Errorf("the file of a living process is gone: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	sweepInputs(dir)
	if _, err := os.Stat(turn); !os.IsNotExist(err) {
		t.Errorf("the file of a killed process: %v", err)
	}
}
