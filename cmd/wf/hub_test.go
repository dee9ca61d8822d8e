package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/hub/client"
	"wf/protocol"
)

// A process is a daemon of wf that runs as a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	err  *safeBuffer
	line []byte // the one that it writes when it listens
}

// startProcess starts a daemon and returns when it listens.
func startProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startCommand(t, wfIn(dir, append(args, "-o", "json")...))
}

// startCommand starts a process, and returns when it has said its first line.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, err: &safeBuffer{}}
	p.cmd.Stderr = p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd, p.err)
		}
	})
	if p.line, err = bufio.NewReader(out).ReadBytes('\n'); err != nil {
		t.Fatalf("no line from %s: %v\n%s", cmd, err, p.err)
	}
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Error(err)
		}
		_ = p.cmd.Wait() // it was killed
	}
}

const gatesYAML = `
wf: 1
name: gates
inputs: {topic: {type: string, required: true}}
roles:
  first: {run: 'until [ -e go1 ]; do sleep 0.01; done; echo "$TOPIC"', env: {TOPIC: "${{ inputs.topic }}"}}
  second: {run: 'until [ -e go2 ]; do sleep 0.01; done; echo second'}
  third: {run: 'echo third'}
`

// A run is started at a hub with two agents. Its agent is killed in the first step, the hub in
// the second, and comes back with an empty disk: whoever follows the run sees each event once
// and in order, and the run is done.
func TestK07K08AgentAndHubAreKilledAndTheRunFinishes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts five daemons")
	}
	const topic = "the-topic-that-stays-with-its-agent"
	root := t.TempDir()
	dirs := map[string]string{}
	for _, name := range []string{"hub", "ada", "bob"} {
		dirs[name] = filepath.Join(root, name)
		if err := os.Mkdir(dirs[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dirs["ada"], "gates.yaml", gatesYAML)
	write(t, dirs["bob"], "other.yaml", "wf: 1\nname: other\nroles: {only: {run: 'true'}}\n")
	trustAll(t, dirs["ada"])
	trustAll(t, dirs["bob"])
	data := filepath.Join(dirs["hub"], "data")
	address := "127.0.0.1:0"
	var said api.HubServing
	startHub := func() *process {
		p := startProcess(t, dirs["hub"], "hub", "--listen", address, "--data", data)
		if err := json.Unmarshal(p.line, &said); err != nil {
			t.Fatal(err)
		}
		address = strings.TrimPrefix(said.Listen[0].URL, "http://")
		return p
	}
	hub := startHub()
	startAgent := func(name string) *process {
		return startProcess(t, dirs[name], "serve", "--name", name, "--listen", "unix", "--hub", said.Listen[0].URL, "--hub-token-file", said.AgentToken)
	}
	ada := startAgent("ada")
	startAgent("bob")

	token, err := daemon.ReadToken(said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	there, err := client.New(said.Listen[0].URL, client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run, fresh, err := there.Submit(ctx, &api.Start{Workflow: "gates", Inputs: map[string]json.RawMessage{"topic": []byte(`"` + topic + `"`)}}, nil)
	if err != nil || !fresh {
		t.Fatalf("run %s, %v, %v", run, fresh, err)
	}

	var got []protocol.Entry
	began := map[string]int{}
	head := http.Header{}
	there.Authorize(head)
	r := client.Replay{URL: there.Base() + "/v1/replay", HTTP: there.HTTP(), Header: head, Codec: protocol.CBORFrames, Run: run, Live: true}
	err = r.Follow(ctx, client.Consumer{
		Event: func(e client.Event) error {
			got = append(got, e.Entry)
			switch {
			case e.Type == protocol.EvDone:
				cancel()
			case e.Type == protocol.EvStepStarted:
				began[e.StepName()]++
				if e.StepName() == "first#1" && began["first#1"] == 1 {
					ada.kill()
					ada = startAgent("ada")
					write(t, dirs["ada"], "go1", "")
				}
				if e.StepName() == "second#1" {
					hub.kill()
					if err := os.Remove(filepath.Join(data, "hub.db")); err != nil {
						return err
					}
					write(t, dirs["ada"], "go2", "")
					hub = startHub()
				}
			}
			return nil
		},
		Reset: func(c client.Cursor) error { return fmt.Errorf("a reset to event %d", c.Seq) },
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, after %d events\nhub:\n%s\nada:\n%s", err, len(got), hub.err, ada.err)
	}
	if began["first#1"] != 2 || began["second#1"] != 1 || began["third#1"] != 1 {
		t.Errorf("steps began %v; the first is cut off once", began)
	}
	sameAsStored(t, filepath.Join(dirs["ada"], ".wf"), run, got)

	// K-09
	b, err := os.ReadFile(filepath.Join(data, "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(topic)) {
		t.Error("the disk of the hub holds an input of the run")
	}
	// The same commands as at home, through the hub.
	wf := func(args ...string) string {
		cmd := wfIn(dirs["hub"], append(args, "--hub", said.Listen[0].URL, "--hub-token-file", said.TokenFile)...)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("wf %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	home := func(args ...string) string {
		out, err := wfIn(dirs["ada"], args...).Output()
		if err != nil {
			t.Errorf("wf %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	for _, args := range [][]string{
		{"show", "-1"}, {"show", "-1", "-o", "json"}, {"show", "-1:second#1"}, {"show", "-1:second#1", "-o", "json"},
		{"log", "-1"}, {"log", "-1:first#1"}, {"replay", "-1", "-o", "jsonl"}, {"replay", "-1", "-o", "json"}, {"replay", "-1", "--from", "3"}, {"replay", "-1", "--from", "3", "--to", "9", "--limit", "4", "-o", "jsonl"},
		{"watch", "-1"}, {"show", string(got[0].CID.String())},
	} {
		if remote, local := wf(args...), home(args...); unplaced(remote) != unplaced(local) || local == "" {
			t.Errorf("wf %s\nat home:\n%s\nthrough the hub:\n%s", strings.Join(args, " "), local, remote)
		}
	}
	login, err := wfIn(dirs["hub"], "hub", "--login", "--listen", address, "--data", data).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(login), said.Listen[0].URL+"/#code=") {
		t.Errorf("wf hub --login: %v: %s", err, login)
	}
	if out := wf("ls", "-o", "json"); !strings.Contains(out, `"agent": "ada-`) {
		t.Errorf("wf ls tells of no agent:\n%s", out)
	}
}

// sameAsStored compares what a follower saw with the journal.
func sameAsStored(t *testing.T, dir string, run protocol.RunID, got []protocol.Entry) {
	t.Helper()
	store, err := cas.Open(context.Background(), dir, cas.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := 0
	for e, err := range store.After(context.Background(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n < len(got) && (got[n].CID != e.CID || got[n].Seq != e.Seq) {
			t.Errorf("event %d was seen as event %d, %s", e.Seq, got[n].Seq, got[n].CID)
		}
		n++
	}
	if n != len(got) {
		t.Errorf("%d events are stored, %d were seen", n, len(got))
	}
}
