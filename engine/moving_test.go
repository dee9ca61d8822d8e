package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// An agent, a question, and a sub-workflow with a question of its own: all work in one workspace.
const movesYAML = `
wf: 1
name: moves
workspace: {track: true, exclude: [.wf]}
roles:
  code: {prompt: You code., model: script/replies.yaml, tools: [read_file, write_file]}
  ok: {ask: "Go on?"}
  part: {workflow: child.yaml}
  more: {prompt: You code., model: script/replies.yaml, tools: [read_file, write_file]}
  list: {run: 'cat given made part again; ls'}
edges:
  - {from: START, to: code, prompt: Begin}
  - {from: code, to: ok}
  - {from: ok, to: part}
  - {from: part, to: more, prompt: Go on}
  - {from: more, to: list}
  - {from: list, to: END}
`

const movesChild = `
wf: 1
name: child
workspace: {track: true, exclude: [.wf]}
roles:
  one: {run: 'echo part > part'}
  really: {ask: "Really?"}
  two: {run: 'cat part made'}
edges: [{from: START, to: one}, {from: one, to: really}, {from: really, to: two}, {from: two, to: END}]
`

const movesScript = `code#1:
  - {tool: write_file, args: {path: made, content: "made\n"}}
  - {text: done}
more#1:
  - {tool: read_file, args: {path: made}}
  - {tool: write_file, args: {path: again, content: "again\n"}}
  - {text: done again}
`

// newMoving is a run of movesYAML on machine "here".
func newMoving(t *testing.T) (a *agents, id protocol.RunID) {
	a = newAgents(t, movesScript)
	a.e.Machine, a.e.Copies = "here", t.TempDir()
	a.write("child.yaml", movesChild)
	a.write("given", "given\n")
	return a, a.start(movesYAML, "")
}

// onto has what follows happen on another machine, in a process of its own.
func (a *agents) onto(machine string) {
	a.e = &engine.Engine{Store: a.e.Store, Version: a.e.Version, Performers: a.e.Performers, Now: a.e.Now, Machine: machine, Copies: a.t.TempDir()}
}

// move has a run go on where the process is.
func (a *agents) move(id protocol.RunID) error {
	_, err := a.e.Drive(a.t.Context(), id, engine.DriveOptions{By: "test", Move: true})
	return err
}

func (a *agents) answer(id protocol.RunID, text string) {
	a.t.Helper()
	if _, err := a.e.Answer(a.t.Context(), id, engine.Reply{Text: text}); err != nil {
		a.t.Fatal(err)
	}
}

// filesIn are the files in a directory, but those of wf.
func filesIn(t *testing.T, dir string) (out string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && e.Name() != "child.yaml" {
			out += fmt.Sprintf("%s=%s ", e.Name(), strings.TrimSpace(string(b)))
		}
	}
	return strings.TrimSpace(out)
}

// A run moves while it waits, while its sub-workflow waits, and back again. It ends as one that never moved: with the same records, with no call of a
// model repeated, and with the same files where it is. The first machine's files stay as they were.
func TestARunMovesWithItsFiles(t *testing.T) {
	still, stayed := newMoving(t)
	still.drive(stayed)
	still.answer(stayed, "yes")
	still.drive(stayed)
	still.answer(stayed, "really")
	if v := still.drive(stayed); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	want(t, "calls", still.asked(), 5)

	a, id := newMoving(t)
	a.drive(id)
	home := filesIn(t, a.dir)
	want(t, "files", home, "given=given made=made")
	a.onto("there")
	a.answer(id, "yes")
	want(t, "machine", a.view(id).Info.Machine, "here")
	if _, err := a.e.Drive(t.Context(), id, engine.DriveOptions{}); !errors.Is(err, protocol.ErrLacks) || !strings.Contains(protocol.HintOf(err), "--here") {
		t.Errorf("it was driven where its files are not: %v", err)
	}
	if _, err := a.e.RestoreFiles(t.Context(), id, engine.Restoration{To: link(t, must(a.e.State(t.Context(), id))(t).Tracked.Tree)}); !errors.Is(err, protocol.ErrLacks) {
		t.Errorf("files were restored where they are not: %v", err)
	}
	if err := a.move(id); err != nil {
		t.Fatal(err)
	}
	v := a.view(id)
	there := roles.ForkedFiles(a.e.Copies, id, filepath.Base(filepath.Dir(v.Info.Workspace)))
	if v.Status != protocol.Waiting || v.Info.Workspace != there || v.Info.Machine != "" {
		t.Fatalf("%s (%s) in %s on another machine (%s), want %s", v.Status, v.Reason, v.Info.Workspace, v.Info.Machine, there)
	}
	want(t, "files where it is", filesIn(t, there), "given=given made=made part=part")
	want(t, "files where it was", filesIn(t, a.dir), home)

	// Its sub-workflow waits there; the third machine has both.
	a.onto("third")
	a.answer(id, "really")
	if err := a.move(id); err != nil {
		t.Fatal(err)
	}
	v = a.view(id)
	if v.Status != done || !strings.HasPrefix(v.Info.Workspace, a.e.Copies) {
		t.Fatalf("%s (%s) in %s", v.Status, v.Reason, v.Info.Workspace)
	}
	want(t, "files at the end", filesIn(t, v.Info.Workspace), "again=again given=given made=made part=part")
	want(t, "files of the second machine", filesIn(t, there), "given=given made=made part=part")
	want(t, "files where it was", filesIn(t, a.dir), home)
	want(t, "calls", a.asked(), 5)
	if d := cmp.Diff(still.every(stayed), a.every(id)); d != "" {
		t.Errorf("records, − of the run that stayed:\n%s", d)
	}
	a.proved(id)
	want(t, "moves", strings.Count(strings.Join(eventsOf(a, id), " "), "files_laid"), 2)
	parts := must(a.e.Descendants(t.Context(), id))(t)
	want(t, "moves of the sub-workflow", strings.Count(strings.Join(eventsOf(a, parts[0]), " "), "files_laid"), 1)
}

// A run that goes back to a machine has its files anew there: what lies there since is kept beside them.
func TestARunMovesBack(t *testing.T) {
	a, id := newMoving(t)
	a.drive(id)
	here := a.e
	a.onto("there")
	there := a.e
	if err := a.move(id); err != nil {
		t.Fatal(err)
	}
	first := a.view(id).Info.Workspace
	a.e = here
	if err := a.move(id); err != nil {
		t.Fatal(err)
	}
	back := a.view(id).Info.Workspace
	if err := os.WriteFile(filepath.Join(first, "mine"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.e = there
	a.answer(id, "yes")
	if err := a.move(id); err != nil {
		t.Fatal(err)
	}
	again := a.view(id).Info.Workspace
	if back == a.dir || again == first || filesIn(t, first) != "given=given made=made mine=kept" || filesIn(t, again) != "given=given made=made part=part" {
		t.Errorf("in %s %s, then in %s, then in %s %s", first, filesIn(t, first), back, again, filesIn(t, again))
	}
}

// What a process left that was killed while it laid files out, or right behind that, is made anew.
func TestFilesThatWereLaidInVainAreLaidAgain(t *testing.T) {
	for _, ready := range []bool{false, true} {
		a, id := newMoving(t)
		a.drive(id)
		a.onto("there")
		s := must(a.e.State(t.Context(), id))(t)
		o, _, err := roles.OpenOwnCopy(a.e.Copies, id, roles.ForkKey(s.Seq+1))
		if err == nil {
			err = os.WriteFile(filepath.Join(o.Files(), "made"), []byte("half"), 0o600)
		}
		if err == nil && ready {
			err = o.Ready(s.Tracked.Tree)
		}
		if err = errors.Join(err, o.Close()); err != nil {
			t.Fatal(err)
		}
		if err := a.move(id); err != nil {
			t.Fatal(err)
		}
		want(t, "files", filesIn(t, a.view(id).Info.Workspace), "given=given made=made")
	}
}

// What cannot be laid out is named, of many the first.
func TestFilesThatAreLeftOutAreNamed(t *testing.T) {
	for _, links := range []int{protocol.FilesLeftOut - 1, protocol.FilesLeftOut, protocol.FilesLeftOut + 1} {
		a, id := newMoving(t)
		for i := range links {
			if err := os.Symlink("/etc/passwd", filepath.Join(a.dir, fmt.Sprintf("link-%03d", i))); err != nil {
				t.Fatal(err)
			}
		}
		a.drive(id)
		a.onto("there")
		if err := a.move(id); err != nil {
			t.Fatal(err)
		}
		var laid protocol.FilesLaid
		for _, x := range a.entries(id) {
			if x.Type == protocol.EvFilesLaid {
				laid = must(cas.DecodeData[protocol.FilesLaid](&x.Event))(t)
			}
		}
		count := 0
		if links > protocol.FilesLeftOut {
			count = links
		}
		if len(laid.LeftOut) != min(links, protocol.FilesLeftOut) || laid.LeftOutCount != count || !strings.HasPrefix(laid.LeftOut[0], "link-000: ") {
			t.Errorf("of %d files that are left out %d are named, %d counted: %q", links, len(laid.LeftOut), laid.LeftOutCount, laid.LeftOut[:1])
		}
	}
}

// Where nothing says what the files are now the run stays, and says why.
func TestARunStaysWhoseFilesAreNotKnown(t *testing.T) {
	const head = "wf: 1\nname: t\nworkspace: {track: true, exclude: [.wf]}\n"
	const ends = "edges: [{from: START, to: a}, {from: a, to: ok}, {from: ok, to: END}]\n"
	for _, c := range []struct {
		name, yaml, child, says string
		before                  func(a *agents, id protocol.RunID) protocol.RunID
	}{
		{"a sub-workflow that records nothing", head + "roles: {a: {workflow: child.yaml}, ok: {ask: Go on?}}\n" + ends,
			"wf: 1\nname: child\nworkspace: {track: false}\nroles: {a: {run: 'echo x > x'}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n",
			"does not record the files that its roles change", nil},
		{"a fork in the directory of its base", head + "roles: {a: {run: 'echo x > x'}, ok: {ask: Go on?}}\n" + ends, "", "nothing was recorded since the fork began",
			func(a *agents, id protocol.RunID) protocol.RunID {
				fork, err := a.e.Fork(context.Background(), id, engine.ForkOptions{At: must(a.e.State(a.t.Context(), id))(a.t.(*testing.T)).Seq})
				if err != nil {
					a.t.Fatal(err)
				}
				return fork
			}},
		{"files that were dropped", head + "roles: {a: {run: 'echo x > x'}, ok: {ask: Go on?}}\n" + ends, "", "the store has not all of them any more",
			func(a *agents, id protocol.RunID) protocol.RunID {
				_, err := a.e.DropFiles(context.Background(), id)
				if err == nil {
					_, err = cas.GC(context.Background(), inDir(a.e), cas.GCOptions{})
				}
				if err != nil {
					a.t.Fatal(err)
				}
				return id
			}},
		{"a visit with files of its own", head + "roles: {a: {set: {n: 1}}, ok: {workflow: child.yaml, workspace: own}}\n" + ends,
			"wf: 1\nname: child\nroles: {ask: {ask: Well?}}\nedges: [{from: START, to: ask}, {from: ask, to: END}]\n", "works in a copy of its own", nil},
	} {
		a := newAgents(t, "")
		a.e.Machine, a.e.Copies = "here", t.TempDir()
		a.write("child.yaml", c.child)
		id := a.start(c.yaml, "")
		if v := a.drive(id); v.Status != protocol.Waiting {
			t.Fatalf("%s: %s (%s)", c.name, v.Status, v.Reason)
		}
		if c.before != nil {
			id = c.before(a, id)
		}
		a.onto("there")
		if err := a.move(id); !errors.Is(err, protocol.ErrLacks) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if slices.Contains(eventsOf(a, id), "files_laid") {
			t.Errorf("%s: it moved", c.name)
		}
	}
}
