package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

const machinesYAML = `
wf: 1
name: build
workspace: {track: true, exclude: [state, "*.script"]}
defaults: {timeout: 10m}
roles:
  code: {prompt: You code., model: script/replies.script, tools: [read_file, write_file]}
  build: {run: 'cat plan; echo begun >> "$ACTS"; until [ -e "$GO" ]; do sleep 0.01; done; cp plan built', env: {ACTS: "${{ inputs.acts }}", GO: "${{ inputs.go }}"}, sandbox: off}
  asks: {ask: "Go on?"}
  check: {prompt: You check., model: script/replies.script, tools: [read_file]}
inputs: {acts: {type: string, required: true}, go: {type: string, required: true}}
edges:
  - {from: START, to: code, prompt: Plan it}
  - {from: code, to: build}
  - {from: build, to: asks}
  - {from: asks, to: check, prompt: "Check it: ${{ output.text }}"}
  - {from: check, to: END}
`

const machinesScript = `code#1: [{tool: write_file, args: {path: plan, content: "the plan\n"}}, {text: planned}]
check#1: [{tool: read_file, args: {path: built}}, {text: checked}]
`

// The machine of a run is gone in the middle of a command: another one lays out what was recorded of its files, and the run goes on in them.
// Then it waits there, and a person on a third machine brings it there. The first machine keeps what it has.
func TestARunGoesOnOnAnotherMachine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a lease")
	}
	machine := func() string {
		dir := t.TempDir()
		write(t, dir, "build.yaml", machinesYAML)
		write(t, dir, "replies.script", machinesScript)
		write(t, dir, "given", "given\n")
		trustAll(t, dir)
		return dir
	}
	one, two, three := machine(), machine(), machine()
	acts, gone := filepath.Join(t.TempDir(), "acts"), filepath.Join(t.TempDir(), "go")
	dsn, err := pgtest.Shared(t).Database(t.Context())
	d := newShared(t, one, dsn, err)
	show := func(run string) api.Run { return d.show(two, run) }
	begun := func() int {
		b, _ := os.ReadFile(acts) // none yet
		return strings.Count(string(b), "begun")
	}
	first, at := d.serve(one)
	run := d.begin(one, at, "build.yaml", "-i", "acts="+acts, "-i", "go="+gone)
	d.until("the command runs", func() bool { return begun() == 1 })
	second, _ := d.serve(two)
	first.kill()
	d.until("it runs on another machine", func() bool { return begun() == 2 })
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.until("the run waits", func() bool { return show(run).Status == protocol.Waiting })
	v := show(run)
	if got := contentsOf(t, v.Info.Workspace, "given", "plan", "built"); !strings.HasPrefix(v.Info.Workspace, two) || got != "given plan built" {
		t.Errorf("it works in %s, with %s", v.Info.Workspace, got)
	}
	if got := contentsOf(t, one, "given", "plan", "built"); got != "given plan" {
		t.Errorf("the first machine has %s", got)
	}
	if out := d.wf(two, "log", run); !strings.Contains(out, "goes on in "+v.Info.Workspace) {
		t.Errorf("wf log does not say that it moved:\n%s", out)
	}

	second.kill()
	if out := d.wf(three, "answer", run, "well"); !strings.Contains(out, "goes on on the machine of its files") {
		t.Errorf("wf answer where the files are not:\n%s", out)
	}
	if out, err := d.try(three, "resume", run); exitOf(t, err) != 4 || !strings.Contains(out, "--here") && !strings.Contains(out, "is driven by") {
		t.Errorf("wf resume where the files are not: %v\n%s", err, out)
	}
	d.until("the run is brought here", func() bool { // the claim of the process that was killed is over
		out, err := d.try(three, "resume", run, "--here")
		if err != nil && !strings.Contains(out, "is driven by") {
			t.Fatalf("wf resume --here: %v\n%s", err, out)
		}
		return err == nil
	})
	v = show(run)
	if got := contentsOf(t, v.Info.Workspace, "given", "plan", "built"); v.Status != protocol.Done || !strings.HasPrefix(v.Info.Workspace, three) || got != "given plan built" {
		t.Errorf("%s (%s) in %s, with %s", v.Status, v.Reason, v.Info.Workspace, got)
	}
	if n := begun(); n != 2 {
		t.Errorf("the command ran %d times", n)
	}
	d.wf(three, "replay", run, "--check")
	d.wf(three, "verify", "--all")
	d.wf(three, "store", "copy", dsn, filepath.Join(three, "copied"))
	if out, err := wfIn(three, "verify", "--all", "--store", filepath.Join(three, "copied")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// contentsOf are those of the names that are files of a directory.
func contentsOf(t *testing.T, dir string, names ...string) string {
	t.Helper()
	var there []string
	for _, name := range names {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil && len(b) > 0 {
			there = append(there, name)
		}
	}
	return strings.Join(there, " ")
}
