package sandbox_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/agentkit/sandbox"
	"wf/protocol"
)

// Private directories go when nobody has used them for long, and never under a command.
func TestOldPrivateDirectoriesAreSwept(t *testing.T) {
	if !sandbox.Probe().Holds {
		t.Skip(sandbox.Probe())
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := stage{t: t, work: t.TempDir()}
	said := func(out io.Writer, line string) error {
		_, err := sandbox.Run(context.Background(), sandbox.Policy{Workspace: s.work, Trust: protocol.Trust{Run: "r1"}}, []string{"sh", "-c", line}, out, io.Discard)
		return err
	}
	run := func(line string) error { return said(io.Discard, line) }
	swept := func(before time.Time, remove bool, wantAll, wantOld int) (bytes int64) {
		t.Helper()
		all, old, bytes, err := sandbox.Sweep(before, remove)
		if err != nil || all != wantAll || old != wantOld {
			t.Errorf("%d directories, %d old (%v), want %d and %d", all, old, err, wantAll, wantOld)
		}
		return bytes
	}
	swept(time.Now(), true, 0, 0)

	up, out := io.Pipe()
	wait := filepath.Join(s.work, "wait")
	ended := make(chan error, 1)
	go func() { ended <- said(out, `echo; until [ -e wait ]; do sleep 0.01; done`) }()
	if _, err := up.Read(make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour)
	swept(future, true, 1, 0)
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	if err := run(`mkdir -p "$HOME/mod" && echo kept >"$HOME/mod/file" && chmod 500 "$HOME/mod"`); err != nil {
		t.Fatal(err)
	}
	swept(time.Now().Add(-time.Hour), true, 1, 0)
	if n := swept(future, false, 1, 2); n != int64(len("kept\n")) {
		t.Errorf("%d bytes", n)
	}
	swept(future, true, 1, 2)
	swept(future, true, 0, 0)
	if err := run("true"); err != nil {
		t.Errorf("after the sweep: %v", err)
	}
	swept(future, false, 1, 2)
}
