package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

const trackedYAML = `wf: 1
name: tracked
workspace: {track: true, exclude: [.wf]}
roles:
  a: {run: "echo a > made; rm many/7"}
  b: {run: "ls many | wc -l; cat made"}
edges:
  - {from: a, to: b}
  - {from: b, to: END}
`

// A fork has a thousand files of its own, hostile names among them; they stay when it is over, other runs that work in them keep
// them, and they go with it.
func TestC04AForkHasFilesOfItsOwn(t *testing.T) {
	b := newBench(t)
	b.e.Copies = t.TempDir()
	if err := os.MkdirAll(filepath.Join(b.dir, "many"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(b.dir, "many", fmt.Sprint(i)), fmt.Append(nil, i), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"many/inside": "7", "many/outside": "/etc/passwd", "many/above": "../../above"} {
		if err := os.Symlink(to, filepath.Join(b.dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "many", "-rf\n\x1b[2J"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	run, v := b.run(trackedYAML, nil)
	if v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	s := must(b.e.State(ctx, run))(t)
	root := must(protocol.ParseLink(s.Tracked.Tree))(t)
	var left []string
	fork := must(b.e.Fork(ctx, run, engine.ForkOptions{At: before(t, b, run, "a#1"), Files: root, LeftOut: func(what string) { left = append(left, what) }}))(t)
	dir := roles.ForkedFiles(b.e.Copies, fork, roles.ForkKey(0))
	if len(left) != 2 || !strings.HasPrefix(left[0], "many/above: it is a link that leads out") || !strings.HasPrefix(left[1], "many/outside: ") {
		t.Errorf("left out were %q", left)
	}
	count := func() int { return len(must(os.ReadDir(filepath.Join(dir, "many")))(t)) }
	if n := count(); n != 1002 {
		t.Errorf("the fork has %d files", n)
	}
	f := b.drive(fork)
	if f.Status != done || f.Info.Workspace != dir || count() != 1001 {
		t.Errorf("%s (%s) in %s with %d files", f.Status, f.Reason, f.Info.Workspace, count())
	}
	again := must(b.e.Fork(ctx, fork, engine.ForkOptions{At: before(t, b, fork, "b#1")}))(t)
	if again := b.view(again); again.Info.Workspace != dir {
		t.Errorf("a fork of the fork works in %s", again.Info.Workspace)
	}
	leave := must(roles.ShareOwnCopy(filepath.Dir(dir)))(t) // as a run that works there does
	if _, _, err := b.e.Delete(ctx, fork, engine.Burial{}); err != nil {
		t.Fatal(err)
	}
	if count() != 1001 {
		t.Error("files went while a run worked in them")
	}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	if err := roles.DropForkedFiles(b.e.Copies, fork); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(b.e.Copies, string(fork))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the files are left: %v", err)
	}
	if _, err := b.e.Drive(ctx, again, engine.DriveOptions{}); !errors.Is(err, protocol.ErrNotFound) || !strings.Contains(err.Error(), "the files of the run are gone") {
		t.Errorf("a run without its files: %v", err)
	}
}

// Where the files cannot be written there is no fork, and nothing is left of them.
func TestC04AForkThatCannotHaveItsFilesIsNone(t *testing.T) {
	b := newBench(t)
	b.e.Copies = t.TempDir()
	if err := os.Mkdir(filepath.Join(b.dir, "many"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "many", "7"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	run, _ := b.run(trackedYAML, nil)
	s := must(b.e.State(ctx, run))(t)
	root := must(protocol.ParseLink(s.Tracked.Tree))(t)
	o := engine.ForkOptions{At: before(t, b, run, "a#1"), RequestID: "one"}
	none := func(what string, err error, want error) {
		t.Helper()
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		if _, _, err := b.e.Store.Tip(ctx, engine.RequestRun("one")); !errors.Is(err, protocol.ErrUnknownRun) {
			t.Errorf("%s: there is a fork (%v)", what, err)
		}
		if left, err := filepath.Glob(filepath.Join(b.e.Copies, "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left (%v)", what, left, err)
		}
	}
	o.Files = protocol.RawLink([]byte("no tree"))
	_, err := b.e.Fork(ctx, run, o)
	none("no tree", err, nil)
	stopped, stop := context.WithCancel(ctx)
	stop()
	o.Files = root
	_, err = b.e.Fork(stopped, run, o)
	none("Ctrl-C", err, context.Canceled)
	copies := b.e.Copies
	b.e.Copies = filepath.Join(b.dir, "made")
	_, err = b.e.Fork(ctx, run, o)
	b.e.Copies = ""
	_, err2 := b.e.Fork(ctx, run, o)
	b.e.Copies = copies
	none("a file in the place of the directory", err, nil)
	none("no directory", err2, protocol.ErrUsage)
	if fork, err := b.e.Fork(ctx, run, o); err != nil || fork != engine.RequestRun("one") {
		t.Errorf("then %s is forked: %v", fork, err)
	}
}
