package main

import (
	"os/exec"
	"strings"
	"testing"

	"wf/pgstore/pgtest"
	"wf/protocol"
)

const needsYAML = `
wf: 1
name: train
roles:
  prepare: {run: 'echo prepared'}
  learn: {run: 'echo learned', needs: [gpu]}
edges: [{from: START, to: prepare}, {from: prepare, to: learn}, {from: learn, to: END}]
`

// Where no process has what a role needs, the run is kept and waits, and wf says for what.
func TestARunWaitsForAWorkerThatHasWhatItNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "train.yaml", needsYAML)
	trustAll(t, dir)
	with := func(cmd *exec.Cmd, env string) *exec.Cmd {
		cmd.Env = append(cmd.Env, env)
		return cmd
	}
	out, err := wfIn(dir, "run", "train.yaml", "--request-id", "r").CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 4 || !strings.Contains(string(out), "waits for a worker that has gpu") {
		t.Errorf("wf run without it: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"ls"}, {"show", "-1"}} {
		if out, err := wfIn(dir, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "waits for a worker that has gpu") {
			t.Errorf("wf %s: %v\n%s", args, err, out)
		}
	}
	if out, err := with(wfIn(dir, "resume", "-1"), "WF_HAS=GPU").CombinedOutput(); err == nil || !strings.Contains(string(out), `WF_HAS: "GPU" is no name`) {
		t.Errorf("with a name that is none: %v\n%s", err, out)
	}
	if out, err := with(wfIn(dir, "resume", "-1"), "WF_HAS=docker,gpu").CombinedOutput(); err != nil {
		t.Errorf("wf resume where it is: %v\n%s", err, out)
	}
	if out, err := wfIn(dir, "ls").CombinedOutput(); err != nil || strings.Contains(string(out), "waits") {
		t.Errorf("wf ls behind it: %v\n%s", err, out)
	}
}

// In a database a worker that lacks it leaves the run to one that does not.
func TestTheWorkerThatHasWhatARunNeedsDrivesIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "train.yaml", needsYAML)
	trustAll(t, dir)
	dsn, err := pgtest.Shared(t).Database(t.Context())
	d := newShared(t, dir, dsn, err)
	_, at := d.serve(dir)
	run := d.begin(dir, at, "train.yaml")
	d.until("the run waits", func() bool { return len(d.show(dir, run).Lacks) > 0 }) // it is looked at while the first worker lets it go
	if out := d.wf(dir, "ls"); !strings.Contains(out, "waits for a worker that has gpu") {
		t.Errorf("wf ls: %s", out)
	}
	d.serve(dir, "--has", "gpu")
	d.until("the run is done", func() bool { return d.show(dir, run).Status == protocol.Done })
}
