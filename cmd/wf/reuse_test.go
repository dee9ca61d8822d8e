package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// M-01: a process that is killed around reused leaves a run that ends in the same records and files, whether the result was
// taken or not.
func TestM01AProcessThatIsKilledAroundReused(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some 20 processes")
	}
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	write(t, dir, "make.yaml", `
wf: 1
name: make
roles:
  make:
    run: mkdir -p out; for i in $(seq 300); do echo "file $i" > out/$i; done; echo made
    timeout: 1m
    cache: true
`)
	wf := func(args ...string) *exec.Cmd {
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "WF_STORE="+filepath.Join(dir, ".wf"))
		return cmd
	}
	record := func() string {
		t.Helper()
		out, err := wf("show", "-1", "-o", "json").Output()
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Status string
			Result string
			Steps  []struct{ CID string }
		}
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatal(err)
		}
		return v.Status + " " + v.Result + " " + v.Steps[0].CID
	}
	if out, err := wf("run", "make.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := record()
	for point := range 5 {
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		run := wf("run", "make.yaml", "--request-id", fmt.Sprint(point))
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Wait() }()
		awaitSeq(t, filepath.Join(dir, ".wf"), engine.RequestRun(fmt.Sprint(point)), protocol.Seq(point+1), ended)
		if err := run.Process.Kill(); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		<-ended
		out, _ := wf("resume", "-1").CombinedOutput() // it may be done
		if got := record(); got != want {
			t.Errorf("killed behind event %d: %s, want %s\n%s", point+1, got, want, out)
		}
		for i := 1; i <= 300; i++ {
			if b, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprint(i))); string(b) != fmt.Sprintf("file %d\n", i) {
				t.Fatalf("killed behind event %d: out/%d is %q, %v", point+1, i, b, err)
			}
		}
		if left, err := filepath.Glob(filepath.Join(dir, "out", ".wf-*")); err != nil || len(left) > 0 {
			t.Errorf("killed behind event %d: %v is left, %v", point+1, left, err)
		}
	}
}

// awaitSeq returns when a run has an event of that number, or its process has ended.
func awaitSeq(t *testing.T, dir string, run protocol.RunID, until protocol.Seq, ended chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		select {
		case exit := <-ended:
			ended <- exit // for the caller
			stop()
		case <-ctx.Done():
		}
	}()
	store, err := cas.Open(t.Context(), dir, cas.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for {
		changes, err := store.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		head, err := store.Head(t.Context(), protocol.RunHead(run))
		if err != nil {
			t.Fatal(err)
		}
		if head.Seq >= until {
			return
		}
		if _, err := store.AwaitChange(ctx, changes); ctx.Err() != nil {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
