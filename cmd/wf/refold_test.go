package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// F-42: a stored state that was edited in place made wf ls lie, a drive go on from it, and verify agree. Now
// what the user's key has not sealed is not used; verify computes the state again, names what differs and
// the command that mends it.
func TestAnEditedStateIsNotUsedAndVerifyFindsIt(t *testing.T) {
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
	run := string(protocol.RunOf(heads[0].Name))
	d, sealed, err := s.Derived(ctx, "state/"+run)
	if sealed || !d.Head.Defined() || err != nil {
		t.Fatalf("the state is %x, sealed without a key: %t, %v", d.Data, sealed, err)
	}
	d.Data = bytes.ReplaceAll(d.Data, []byte("ddone"), []byte("dfake")) // the CBOR of "done"
	if err := s.Commit(ctx, cas.Batch{Derived: []cas.Derived{d}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _ := wf("ls", "-o", "json"); strings.Contains(out, "fake") || !strings.Contains(out, "done") {
		t.Errorf("the edited state is shown: %s", out)
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

// A drive goes on from a stored state only if the user's own key has sealed it. Sealed by another one it
// would lead a run under a definition that its journal does not know.
func TestADriveGoesOnFromNoStateThatOthersWrote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seal func(state string) ([]byte, error)
		want string
	}{
		"without a key":        {func(string) ([]byte, error) { return nil, nil }, "fine"},
		"with another key":     {func(string) ([]byte, error) { return cas.UserKey(t.TempDir()) }, "fine"},
		"with the key of user": {cas.UserKey, "evil"}, // the attack, where the key is known
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			starts := map[string]protocol.Link{}
			var state []byte
			var s *cas.Store
			var run protocol.RunID
			open := func(seal []byte) {
				t.Helper()
				var err error
				if s, err = cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{MustExist: true, Seal: seal}); err != nil {
					t.Fatal(err)
				}
			}
			closed := func() {
				t.Helper()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, does := range []string{"evil", "fine"} {
				write(t, dir, does+".yaml", "wf: 1\nname: "+does+"\nroles:\n  gate: {ask: Go on?}\n  after: {run: touch "+does+"}\n")
				leaveWaiting(t, dir, does+".yaml")
				open(nil)
				var err error
				if run, err = appOf(s.Dir()).atStore(s).run(ctx, "-1"); err != nil {
					t.Fatal(err)
				}
				st, err := (&engine.Engine{Store: s}).State(ctx, run)
				if err != nil {
					t.Fatal(err)
				}
				starts[does] = st.Start
				if state, err = cas.Marshal(st.Snapshot()); err != nil {
					t.Fatal(err)
				}
				closed()
			}
			seal, err := c.seal(filepath.Join(dir, "state", "wf"))
			if err != nil {
				t.Fatal(err)
			}
			open(seal)
			head, _, err := s.Tip(ctx, run)
			if err != nil {
				t.Fatal(err)
			}
			state = bytes.ReplaceAll(state, starts["fine"].Bytes(), starts["evil"].Bytes())
			if err := s.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: "state/" + string(run), Head: head, Data: state}}}); err != nil {
				t.Fatal(err)
			}
			closed()
			if out, err := wfIn(dir, "answer", string(run), "yes").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for does := range starts {
				if isFile(filepath.Join(dir, does)) != (does == c.want) {
					t.Errorf("it did %s: %t", does, does != c.want)
				}
			}
		})
	}
}
