package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"wf/api"
	"wf/protocol"
)

// F-52: a user who leaves a request that no worker has begun withdraws it, by SIGTERM as by Ctrl-C; a run that has
// begun goes on without its submitter.
func TestASubmitterThatIsTerminatedWithdrawsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(name string) string {
		dir := filepath.Join(top, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	var said api.HubServing
	if err := json.Unmarshal(startProcess(t, at("hub"), "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(top, "data")).line, &said); err != nil {
		t.Fatal(err)
	}
	worker := at("worker")
	write(t, worker, "gate.yaml", "wf: 1\nname: gate\nroles: {only: {run: 'until [ -e go ]; do sleep 0.01; done'}}\n")
	s := startServe(t, worker, "--listen", "unix", "--hub", said.Listen[0].URL, "--hub-token-file", said.AgentToken, "--capacity", "1")
	submit := func(says string) *exec.Cmd {
		cmd := wfIn(at("client"), "run", "gate", "--hub", said.Listen[0].URL, "--hub-token-file", said.TokenFile)
		stderr := &safeBuffer{}
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // an error: it has ended
		awaitText(t, says, stderr)
		return cmd
	}
	terminate := func(cmd *exec.Cmd) {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit, failed := errors.AsType[*exec.ExitError](cmd.Wait()); !failed || exit.ExitCode() != 130 && exit.ExitCode() != 143 {
			t.Errorf("it exits with %v", exit)
		}
	}
	first := submit("only#1")
	second := submit("withdraws it")
	terminate(second)
	terminate(first)
	hub := ofHub(t, said)
	raw, err := hub.Queue(t.Context())
	var queue struct {
		Items []struct{ State string }
	}
	if err := errors.Join(err, json.Unmarshal(raw, &queue)); err != nil {
		t.Fatal(err)
	}
	for _, job := range queue.Items {
		if job.State == "queued" || job.State == "leased" {
			t.Errorf("a job waits still: %s", raw)
		}
	}
	write(t, worker, "go", "")
	runs := s.awaitRuns(1)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	s.awaitStatus(runs[0], protocol.Done)
}
