package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/engine"
	"wf/files/filestest"
)

// O-03b: ten processes at once, some of which are killed, act one at a time, or three, and all end.
func TestO03bTenProcessesTakeTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some 30 processes")
	}
	t.Parallel()
	for _, slots := range []int{1, 3} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "g.yaml", fmt.Sprintf(`
wf: 1
name: turns
inputs: {n: {type: string, required: true}}
concurrency: {group: g, max: %d}
roles:
  act: {run: 'echo "+$N" >>log; until [ -e go ]; do sleep 0.01; done; echo "-$N" >>log', env: {N: "${{ inputs.n }}"}, timeout: 1m}
`, slots))
			wf := func(args ...string) *exec.Cmd {
				cmd := exec.Command("wf", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "WF_STORE="+filepath.Join(dir, ".wf"))
				return cmd
			}
			const runs = 10
			var cmds []*exec.Cmd
			var outs []*bytes.Buffer
			for n := range runs {
				cmd, out := wf("run", "g.yaml", "-q", "-i", fmt.Sprintf("n=%d", n), "--request-id", fmt.Sprint("r", n)), &bytes.Buffer{}
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				cmds, outs = append(cmds, cmd), append(outs, out)
			}
			acting := func() (open map[string]bool, log string) {
				open = map[string]bool{}
				b, err := os.ReadFile(filepath.Join(dir, "log"))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(b)) {
					sign, n := line[:1], strings.TrimSpace(line[1:])
					if sign == "+" {
						open[n] = true // again, where its process was killed
					} else {
						delete(open, n)
					}
					if len(open) > slots {
						t.Fatalf("%v act at once:\n%s", open, b)
					}
				}
				return open, string(b)
			}
			var open map[string]bool
			err := filestest.Await(t.Context(), dir, func() bool { open, _ = acting(); return len(open) == slots })
			if err != nil {
				t.Fatal(err)
			}
			killed := map[string]bool{}
			var resumed []*exec.Cmd
			for n := range open {
				if len(killed) == 2 {
					break
				}
				killed[n] = true
				cmd := cmds[n[0]-'0']
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err == nil {
					t.Fatalf("run %s ended before it was killed", n)
				}
				resumed = append(resumed, wf("resume", string(engine.RequestRun("r"+n)), "-q"))
			}
			write(t, dir, "go", "")
			for _, cmd := range resumed {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}
			for i, cmd := range cmds {
				if killed[fmt.Sprint(i)] {
					continue
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("run %d: %v\n%s", i, err, outs[i])
				}
			}
			open, log := acting()
			for n := range runs {
				if strings.Count(log, fmt.Sprintf("-%d\n", n)) != 1 {
					t.Errorf("run %d ended not once:\n%s", n, log)
				}
			}
			if len(open) > 0 {
				t.Errorf("%v act for ever:\n%s", open, log)
			}
			if out, err := wf("verify", "--all").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
