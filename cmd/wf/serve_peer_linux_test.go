package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"wf/agentkit/sandbox"
)

// A command of an agent is confined, and has the user's uid. It finds no socket of the daemon in the
// workspace; one that the user put there (F-33), and that it can see, does not serve it, also when
// it was bound after the command began.
func TestAConfinedCommandIsNotServed(t *testing.T) {
	t.Parallel()
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
	if err := os.Mkdir(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	installCopy(t, program, wf)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, work, "only.yaml", "wf: 1\nname: only\nroles: {only: {run: 'true'}}\n")
	inside := filepath.Join(work, "s", "wf.sock")
	dial := func(socket, line string) (int, string, error) {
		var said bytes.Buffer
		code, err := sandbox.Run(t.Context(), sandbox.Policy{Workspace: work, Grants: sandbox.Grants{Read: []string{program}}, Environ: []string{"WF=" + program, "SOCKET=unix:" + socket}},
			[]string{"sh", "-c", line + `exec "$WF" ls --hub "$SOCKET" -o json`}, &said, &said)
		return code, said.String(), err
	}
	refused := func(socket string, code int, said string, err error) {
		t.Helper()
		switch {
		case err != nil:
			t.Error(err)
		case code == 0, strings.Contains(said, `"items"`), !strings.Contains(said, "server_unreachable"):
			t.Errorf("a confined command at %s: %d %s", socket, code, said)
		}
	}
	// This command has begun when the daemon binds its sockets: in the workspace nothing masks one.
	if err := unix.Mkfifo(filepath.Join(work, "begun"), 0o600); err != nil {
		t.Fatal(err)
	}
	begun, err := os.OpenFile(filepath.Join(work, "begun"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	var before sync.WaitGroup
	t.Cleanup(before.Wait) // its context has ended by then
	before.Go(func() {
		code, said, err := dial(inside, "echo x > begun; until test -e bound; do sleep 0.02; done; ")
		refused(inside, code, said, err)
		if _, err := begun.WriteString("y"); err != nil { // where it did not begin
			t.Error(err)
		}
	})
	if _, err := begun.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
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
		code, said, err := dial(socket, "")
		refused(socket, code, said, err)
	}
	write(t, work, "bound", "")
	before.Wait()
	if said := s.err.String(); !strings.Contains(said, "peer refused") || !strings.Contains(said, inside) || !strings.Contains(said, "namespace") {
		t.Errorf("the daemon says nothing of it: %s", said)
	}
}
