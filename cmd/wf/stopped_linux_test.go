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
	"time"

	"wf/files/filestest"
)

// stopSlack is for a machine that does much else.
const stopSlack = 5 * time.Second

// F-414: SIGTERM ends a run within stopMost, whatever it computes, and what is stored is whole.
func TestF414SIGTERMEndsWhateverARunComputes(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for half a minute")
	}
	t.Parallel()
	var edges strings.Builder
	for i := range 400 { // each of them just below the bound of an expression
		fmt.Fprintf(&edges, "  - {from: a, to: b, when: \"sum(1..1500, sum(1..1500, # + %d)) < 0\"}\n", i)
	}
	for name, text := range map[string]string{
		"expressions": "wf: 1\nname: x\ndefaults: {timeout: 1h}\nroles:\n  a: {run: touch began}\n  b: {set: {x: 1}}\n  c: {set: {x: 1}}\nedges:\n" + "  - {from: START, to: a}\n" + edges.String() +
			"  - {from: a, to: c}\n  - {from: b, to: END}\n  - {from: c, to: END}\n",
		"a fan-out": "wf: 1\nname: x\ndefaults: {timeout: 1h}\nroles:\n  a: {run: touch began}\n  b: {set: {n: \"${{ sum(1..1500, sum(1..1500, # + item)) }}\"}}\nedges:\n" +
			"  - {from: START, to: a}\n  - {from: a, to: b, for_each: 1..5000}\n  - {from: b, to: END}\n",
		"checks of values": "wf: 1\nname: x\ndefaults: {timeout: 1h}\nroles:\n  a:\n    run: \"touch began; printf '{\\\"n\\\": [1'; yes ,1 | head -n 2000000 | tr -d '\\\\n'; printf ']}'\"\n" +
			"    retry: {attempts: 100, delay: 1ms}\n    output: {type: object, properties: {n: {items: {type: integer, anyOf: [{const: 5}, {enum: [1, 2]}]}}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "x.yaml", text)
			wf := func(args ...string) *exec.Cmd {
				cmd := exec.Command("wf", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "WF_STORE="+filepath.Join(dir, ".wf"))
				return cmd
			}
			run := wf("run", "x.yaml")
			var said safeBuffer
			run.Stdout, run.Stderr = &said, &said
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(said.String())
				}
			})
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			works(t, run.Process.Pid, filepath.Join(dir, "began"), ended)
			if err := run.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			select {
			case <-ended:
			case <-time.After(stopMost + stopSlack):
				t.Errorf("it works on %v after SIGTERM", stopMost+stopSlack)
				if err := run.Process.Kill(); err != nil {
					t.Error(err)
				}
				<-ended
			}
			t.Logf("ended %v after SIGTERM", time.Since(began).Round(time.Millisecond))
			if code := run.ProcessState.ExitCode(); code != 143 {
				t.Errorf("exit status %d", code)
			}
			if out, err := wf("verify", "--all").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// works waits until a process has computed for a second since a file came.
func works(t *testing.T, pid int, file string, ended <-chan error) {
	t.Helper()
	from := -1
	filestest.Until(t, "it works for a second", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		ticks := 0
		for _, f := range fields[11:13] { // utime and stime
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
		if _, err := os.Stat(file); err == nil && from < 0 {
			from = ticks
		}
		return from >= 0 && ticks-from >= 100
	}, ended)
}
