package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// A command of an agent is confined, and has the user's uid. It finds no socket of the daemon in the
// workspace; one that the user put there (F-33), and that it can see, does not serve it, also when
// it was bound after the command began.
func TestAConfinedCommandIsNotServed(t *testing.T) {
	tier := sandbox.Probe()
	if !tier.Holds || !tier.Namespaces {
		t.Skip("commands have no namespaces of their own here: ", tier)
	}
	wf, err := exec.LookPath("wf")
	if err != nil {
		t.Fatal(err)
	}
	// Not below /tmp or /dev/shm, of which commands have their own.
	dir, err := os.MkdirTemp("/var/tmp", "wf-peer-")
	if err != nil {
		t.Skip("no /var/tmp: ", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(dir, "bin", "wf")
	b, err := os.ReadFile(wf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, work, "only.yaml", "wf: 1\nname: only\nroles: {only: {run: 'true'}}\n")
	inside := filepath.Join(work, "s", "wf.sock")
	s := startServe(t, work, "--listen", "unix:"+inside, "--listen", "unix")
	if err := filepath.WalkDir(filepath.Join(work, ".wf"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type() == os.ModeSocket {
			t.Errorf("a socket in the store: %s", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	own := strings.TrimPrefix(s.said.Listen[1].URL, "unix:")
	if strings.HasPrefix(own, work) {
		t.Errorf("the daemon listens in the workspace: %s", own)
	}
	for _, socket := range []string{inside, own} {
		ls := []string{"ls", "--hub", "unix:" + socket, "-o", "json"}
		if out, err := wfIn(work, ls...).CombinedOutput(); err != nil { // outside it answers
			t.Fatalf("%s: %v %s", socket, err, out)
		}
		var said bytes.Buffer
		code, err := sandbox.Run(t.Context(), sandbox.Policy{Workspace: work, Read: []string{program}}, append([]string{program}, ls...), &said, &said)
		if err != nil {
			t.Fatal(err)
		}
		if code == 0 || strings.Contains(said.String(), `"items"`) {
			t.Errorf("a confined command is served at %s: %d %s", socket, code, said.String())
		}
		if !strings.Contains(said.String(), "server_unreachable") {
			t.Errorf("at %s: %s", socket, said.String())
		}
	}
	if said := s.err.String(); !strings.Contains(said, "peer refused") || !strings.Contains(said, inside) || !strings.Contains(said, "namespace") {
		t.Errorf("the daemon says nothing of it: %s", said)
	}
}
