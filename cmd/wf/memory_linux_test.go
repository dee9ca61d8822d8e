package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func init() { programs["peak"] = peak }

// peak runs the program that its arguments name and leaves in the file $WF_PEAK how many bytes that had in
// memory at most. The kernel counts what the process had that starts a program: a test that has run for a
// while has much, and this has little.
func peak() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if err == nil {
		most := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		err = os.WriteFile(os.Getenv("WF_PEAK"), strconv.AppendInt(nil, most, 10), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A visit of more than 10,000 events, and then its replay, take less than 200 MB each.
func TestAVisitOfTenThousandEventsTakesLittleMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten thousand events; the memory of the race detector is no measure")
	}
	const replies, calls, most = 100, 50, 200 << 20
	dir := t.TempDir()
	write(t, dir, "note.txt", noise("note", 400))
	var script strings.Builder
	script.WriteString("reader#1:\n")
	for i := range replies {
		call := fmt.Sprintf("{tool: read_file, args: {path: %q}}", []string{"note.txt", "./note.txt"}[i%2]) // the same again and again would suspend it
		script.WriteString("  - {tools: [" + strings.Repeat(call+", ", calls-1) + call + "]}\n")
	}
	script.WriteString("  - {text: Read.}\n")
	write(t, dir, "replies.yaml", script.String())
	write(t, dir, "read.yaml", fmt.Sprintf(`
wf: 1
name: read
roles:
  reader: {prompt: You read., tools: [read_file], model: script/replies.yaml, max_turns: %d, timeout: 10m, compaction: {watermark: 100000000}}
`, replies+1))
	wf := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command("peak", append([]string{"wf"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "WF_PEAK="+filepath.Join(dir, "peak"), "HOME="+dir, "WF_STORE="+filepath.Join(dir, ".wf"), "XDG_STATE_HOME=", "XDG_DATA_HOME=")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("wf %s: %v", strings.Join(args, " "), err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "peak"))
		if err != nil {
			t.Fatal(err)
		}
		peak, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("wf %s: %d MB at most", args[0], peak>>20)
		if peak > most {
			t.Errorf("wf %s takes %d MB, want at most %d", args[0], peak>>20, most>>20)
		}
		return out
	}
	wf("run", "read.yaml", "-q")
	if n := strings.Count(string(wf("replay", "-1", "-o", "jsonl")), "\n"); n < 10_000 {
		t.Errorf("%d events", n)
	}
}
