package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// F-42: a stored state that was edited in place, and sealed anew, made wf ls lie and verify agree. Now
// verify computes the state again, names what differs and the command that mends it.
func TestVerifyFindsAnEditedState(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	yaml := "wf: 1\nname: greet\nroles:\n  a: {set: {n: 1}}\n"
	if err := os.WriteFile(filepath.Join(dir, "greet.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	wf := func(args ...string) (string, int) {
		cmd := wfIn(dir, args...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := wf("run", "greet.yaml", "--quiet"); code != 0 {
		t.Fatal(out)
	}
	if out, code := wf("verify"); code != 0 {
		t.Fatal(out)
	}
	s, err := cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	if err != nil || len(heads) != 1 {
		t.Fatal(heads, err)
	}
	run := string(runOf(heads[0]))
	d, ok, err := s.Derived(ctx, "state/"+run)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	d.Data = bytes.ReplaceAll(d.Data, []byte("ddone"), []byte("dfake")) // the CBOR of "done"
	if err := s.Commit(ctx, cas.Batch{Derived: []cas.Derived{d}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _ := wf("ls", "-o", "json"); !strings.Contains(out, "fake") {
		t.Fatalf("the attack does not work: %s", out)
	}
	for _, args := range [][]string{{"verify"}, {"verify", run}, {"verify", "--all"}} {
		out, code := wf(args...)
		if code != 7 || !strings.Contains(out, "run/"+run) || !strings.Contains(out, "wf verify "+run+" --mend") {
			t.Errorf("wf %s: exit %d\n%s", strings.Join(args, " "), code, out)
		}
	}
	if out, code := wf("verify", run, "--mend"); code != 0 || !strings.Contains(out, "dropped") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, code := wf("verify"); code != 0 {
		t.Errorf("mended: exit %d\n%s", code, out)
	}
	if out, _ := wf("ls", "-o", "json"); strings.Contains(out, "fake") || !strings.Contains(out, "done") {
		t.Errorf("mended: %s", out)
	}
}
