package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// coders is a workflow of three visits side by side, each in its own copy; what they do is the input.
const coders = `
wf: 1
name: coders
inputs: {items: {type: array, required: true}}
roles:
  list: {set: {items: "${{ inputs.items }}"}}
  coder: {run: 'eval "$DO"', env: {DO: "${{ item }}"}, workspace: own}
  merge: {merge: {of: coder}}
  fix: {run: 'echo "$PATHS" > fixed', env: {PATHS: "${{ map(output.conflicts, .path + ' ' + .kind) | join(', ') }}"}}
edges:
  - {from: list, to: coder, for_each: output.items}
  - {from: coder, to: merge}
  - {from: merge, to: fix, when: output.status == "conflict"}
  - {from: merge, to: END}
  - {from: fix, to: END}
`

func newOwnBench(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	b.e.Copies = t.TempDir()
	return b
}

// tree are the files of the workspace, but for those of the store.
func (b *bench) tree() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".wf" {
			return fs.SkipDir
		}
		if err == nil && !e.IsDir() {
			var text []byte
			text, err = os.ReadFile(path)
			rel, _ := filepath.Rel(b.dir, path)
			out[rel] = string(text)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// copies are the directories that visits have for themselves.
func (b *bench) copies() []string {
	b.t.Helper()
	all, err := filepath.Glob(filepath.Join(b.e.Copies, "*", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

type mergeData struct {
	Status, Base, Tree string
	Conflicts          []struct {
		Path, Kind, Lines, Why string
		Item                   *int
	}
	More int
}

func (b *bench) merged(v *api.Run, step string) (d mergeData) {
	b.t.Helper()
	for _, s := range v.Steps {
		if s.ID == step {
			if err := json.Unmarshal(s.Output, &d); err != nil {
				b.t.Fatal(err)
			}
			return d
		}
	}
	b.t.Fatalf("there is no step %s", step)
	return d
}

func (b *bench) done(v *api.Run) {
	b.t.Helper()
	if v.Status != protocol.Done {
		b.t.Fatalf("%s: %s", v.Status, v.Reason)
	}
}

func TestC04CodersSideBySideAreMerged(t *testing.T) {
	b := newOwnBench(t)
	b.lay(map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "gone": "x", "d/keep": "k", ".gitignore": "out\n", "out/big": "ignored"})
	_, v := b.run(coders, map[string]any{"items": []any{
		"sed -i s/1/one/ a; rm gone; mkdir out; echo o > out/new; pwd",
		"sed -i s/4/four/ a; echo n > d/new; test ! -e out",
		"sed -i s/7/seven/ a; ln -s a link; chmod +x d/keep",
	}})
	b.done(v)
	if got := b.merged(v, "merge#1"); got.Status != "ok" || len(got.Conflicts) > 0 || got.Base == got.Tree {
		t.Errorf("%+v", got)
	}
	want := map[string]string{"a": "one\n2\n3\nfour\n5\n6\nseven\n", "d/keep": "k", "d/new": "n\n", ".gitignore": "out\n", "out/big": "ignored", "link": "one\n2\n3\nfour\n5\n6\nseven\n"}
	if d := cmp.Diff(want, b.tree()); d != "" {
		t.Error(d)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "d/keep")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if got := b.copies(); len(got) > 0 {
		t.Errorf("copies are left of a run whose merge is recorded: %s", got)
	}
	for _, s := range v.Steps {
		if strings.HasPrefix(s.ID, "coder#1[0]") && (!strings.HasPrefix(s.Text, b.e.Copies) || strings.HasPrefix(s.Text, b.dir)) {
			t.Errorf("it works in %s", s.Text)
		}
	}
	b.sound(v.ID)
}

func TestC04AConflictIsRoutedByAnEdge(t *testing.T) {
	b := newOwnBench(t)
	b.lay(map[string]string{"a": "1\n2\n3\n", "b": "b\n"})
	_, v := b.run(coders, map[string]any{"items": []any{"echo x > a", "echo y > a; echo new > n", "rm b"}})
	b.done(v)
	got := b.merged(v, "merge#1")
	if got.Status != "conflict" || len(got.Conflicts) != 1 || got.Conflicts[0].Path != "a" || got.Conflicts[0].Kind != "lines" || *got.Conflicts[0].Item != 1 ||
		!strings.Contains(got.Conflicts[0].Lines, "y\n") {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(map[string]string{"a": "x\n", "n": "new\n", "fixed": "a lines\n"}, b.tree()); d != "" {
		t.Error(d)
	}
	b.sound(v.ID)
}

// The records of a run are the same whichever visit ended first.
func TestC04TheOrderOfFinishingChangesNoCID(t *testing.T) {
	dir := t.TempDir()
	results := map[string]bool{}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		b := newOwnBench(t)
		b.lay(map[string]string{"a": "1\n2\n3\n4\n5\n", "b": "b\n"})
		// Each visit waits until those before it in the order are done.
		place := filepath.Join(dir, fmt.Sprint(order))
		if err := os.Mkdir(place, 0o755); err != nil {
			t.Fatal(err)
		}
		var items []any
		for i := range order {
			wait := ":"
			if at := slices.Index(order, i); at > 0 {
				wait = fmt.Sprintf("until test -e %d; do sleep 0.01; done", order[at-1])
			}
			if err := os.WriteFile(filepath.Join(place, fmt.Sprint("wait", i)), []byte(wait), 0o644); err != nil {
				t.Fatal(err)
			}
			items = append(items, fmt.Sprintf(`(cd "$PLACE"; . ./wait%d); sed -i s/%d/x%d/ a; echo %d >> b; touch "$PLACE/%d"`, i, 2*i+1, i, i, i))
		}
		t.Setenv("PLACE", place)
		_, v := b.run(coders, map[string]any{"items": items})
		b.done(v)
		results[fmt.Sprint(b.merged(v, "merge#1").Tree, *v.Steps[len(v.Steps)-1].CID)] = true
	}
	if len(results) != 1 {
		t.Errorf("%d results: %v", len(results), results)
	}
}

func TestC04WhatACopyBrings(t *testing.T) {
	b := newOwnBench(t)
	b.lay(map[string]string{"a": "a", ".gitignore": "node_modules\nout\n", "node_modules/m/i.js": "m", "out/o": "o", "sub/.git/config": "c", "sub/x": "x", ".git/HEAD": "h"})
	_, v := b.run(`
wf: 1
name: brings
roles:
  work: {run: 'find . -type f | sort | tr "\n" " "; echo "$GIT_CEILING_DIRECTORIES" | sed s,.*/,,; echo 2 > node_modules/m/i.js; echo 2 > a', workspace: {own: true, carry: [node_modules]}}
  more: {run: 'cat a node_modules/m/i.js', workspace: {own: true, carry: node_modules}}
  merge: {merge: {of: more}}
edges: [{from: START, to: work}, {from: work, to: more}, {from: more, to: merge}, {from: merge, to: END}]
`, nil)
	b.done(v)
	if got, want := v.Steps[0].Text, "./.gitignore ./a ./node_modules/m/i.js ./sub/x "; !strings.HasPrefix(got, want) {
		t.Errorf("a copy has %q, not %q", got, want)
	}
	// A visit that goes on from another one's copy has its files, and of what is not merged those of the workspace.
	if got := v.Steps[1].Text; got != "2\nm" {
		t.Errorf("the next one has %q", got)
	}
	if got := b.tree(); got["a"] != "2\n" || got["node_modules/m/i.js"] != "m" || got["out/o"] != "o" {
		t.Errorf("%v", got)
	}
	b.sound(v.ID)
}

func TestC04ACopyIsRefusedByItsSize(t *testing.T) {
	for size, want := range map[int]string{1 << 20: "", 1<<20 + 1: "copy_limit"} {
		b := newOwnBench(t)
		b.lay(map[string]string{"a": strings.Repeat("x", size-1), "b": "x"})
		_, v := b.run(`
wf: 1
name: limit
roles: {work: {run: "ls", workspace: {own: true, max_copy: 1MB}}}
`, nil)
		step := v.Steps[0]
		switch {
		case want == "" && step.Error != nil:
			t.Errorf("%d bytes: %v", size, step.Error)
		case want != "" && (step.Error == nil || step.Error.Code != want || !strings.Contains(step.Error.Message, "2 files with 1.0 MB") || !strings.Contains(step.Error.Message, "max_copy")):
			t.Errorf("%d bytes: %v", size, step.Error)
		}
		if left := b.copies(); want == "" && len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// A later visit of a fan-out begins with the files of the first one, whatever became of the workspace meanwhile, and what is
// there that no tree has is left alone.
func TestC04AllVisitsOfAFanOutBeginWithOneTree(t *testing.T) {
	b := newOwnBench(t)
	b.lay(map[string]string{"a": "1\n", "b": "1\n", "d/e": "1\n"})
	t.Setenv("MAIN", b.dir)
	_, v := b.run(strings.Replace(coders, "for_each: output.items", "for_each: output.items, max_parallel: 1", 1), map[string]any{"items": []any{
		`cat a; echo 2 > "$MAIN/a"; rm -r "$MAIN/d"; echo new > "$MAIN/new"; echo 2 > b`, `cat a d/e; ls; echo 3 > a; chmod 0500 d`, "false || true"}})
	b.done(v)
	for _, s := range v.Steps {
		if s.ID == "coder#1[1]" && s.Text != "1\n1\na\nb\nd" {
			t.Errorf("the second one had %q", s.Text)
		}
	}
	got := b.merged(v, "merge#1")
	if got.Status != "conflict" || len(got.Conflicts) != 1 || got.Conflicts[0].Path != "a" || got.Conflicts[0].Kind != "workspace" || got.Conflicts[0].Why == "" {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(map[string]string{"a": "2\n", "b": "2\n", "new": "new\n", "fixed": "a workspace\n"}, b.tree()); d != "" {
		t.Error(d)
	}
	b.sound(v.ID)
}

// What visits leave that is no file, or not theirs to touch, reaches neither the tree nor the workspace.
func TestC04WhatVisitsLeaveIsNotTrusted(t *testing.T) {
	b := newOwnBench(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.lay(map[string]string{"a": "1\n", "d/e": "1\n"})
	t.Setenv("OUTSIDE", outside)
	_, v := b.run(coders, map[string]any{"items": []any{
		`mkdir .git .wf; echo evil > .git/config; echo evil > .wf/x; mkfifo pipe; rm a; ln -s "$OUTSIDE" a`,
		`rm -r d; ln -s "$(dirname "$OUTSIDE")" d; mkdir closed; echo x > closed/x; chmod 0 closed`,
		`mkdir -p .GIT; echo evil > .GIT/hook; printf 'a\377b' | xargs touch`}})
	b.done(v)
	if got, err := os.ReadFile(outside); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
	if to, err := os.Readlink(filepath.Join(b.dir, "a")); err != nil || to != outside {
		t.Errorf("%q, %v", to, err)
	}
	for _, name := range []string{".git", ".GIT", "pipe", "a\xffb", ".wf/x"} {
		if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
			t.Errorf("%q came into the workspace", name)
		}
	}
	if left := b.copies(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	b.sound(v.ID)
}

// A process that is killed at any time leaves nothing half-done: the run goes on to the same end.
func TestC04KillsAtEachStage(t *testing.T) {
	if drivenToBeKilled(t, nil) {
		return
	}
	b := newOwnBench(t)
	id, want := b.beginEdits(coders, "sed -i s/two/zwei/ d*/f*")
	kills := b.killedAt(id,
		found(b.e.Copies, "*/*/files", 1),      // the first copy has begun
		found(b.e.Copies, "*/*/files/d1/*", 1), // its files come
		found(b.e.Copies, "*/*/ready", 1),      // it is whole
		found(b.e.Copies, "*/*/ready", 3),
		found(b.dir, "d*/.wf-new-*", 1), // files of the merge are written
		found(b.dir, "d*/.wf-old-*", 1), // they change places
		found(b.dir, "d1/n40", 1),       // all are there
	)
	if v := b.editsMerged(id, want); b.merged(v, "merge#1").Status != "ok" {
		t.Errorf("%+v", b.merged(v, "merge#1"))
	}
	if kills < 3 {
		t.Errorf("the process was killed %d times", kills)
	}
}

// drivenToBeKilled drives the run of killedAt, in the process that is to be killed.
func drivenToBeKilled(t *testing.T, set func(*bench)) bool {
	dir := os.Getenv("WF_TEST_DRIVE")
	if dir == "" {
		return false
	}
	b := &bench{t: t, dir: dir}
	b.open()
	b.e.Copies = os.Getenv("WF_TEST_COPIES")
	if set != nil {
		set(b)
	}
	if _, err := b.e.Drive(context.Background(), protocol.RunID(os.Getenv("WF_TEST_RUN")), engine.DriveOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return true
}

// beginEdits begins a run of three coders that change 300 files between them: first is what the first one does, which has "two"
// become "zwei". want are the files behind their merge.
func (b *bench) beginEdits(yaml, first string) (id protocol.RunID, want map[string]string) {
	main, want := map[string]string{"alone": "x"}, map[string]string{}
	for i := range 300 {
		name, text := fmt.Sprintf("d%d/f%d", i%7, i), fmt.Sprintf("%d\ntwo\nthree\nfour\nfive\n", i)
		main[name], want[name] = text, strings.NewReplacer("two", "zwei", "four", "vier").Replace(text)
	}
	for i := 1; i <= 40; i++ {
		want[fmt.Sprintf("d1/n%d", i)] = fmt.Sprintf("%d\n", i)
	}
	b.lay(main)
	p := b.load(yaml)
	raw, err := p.Inputs(map[string]any{"items": []any{first, "sed -i s/four/vier/ d*/f*; rm -f alone", "for i in $(seq 40); do echo $i > d1/n$i; done"}})
	if err == nil {
		id, _, err = b.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: raw, Workspace: b.dir})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return id, want
}

// editsMerged holds a run that is done against what it was to make.
func (b *bench) editsMerged(id protocol.RunID, want map[string]string) *api.Run {
	v := b.view(id)
	b.done(v)
	if d := cmp.Diff(want, b.tree()); d != "" {
		b.t.Error(d)
	}
	if left := b.copies(); len(left) > 0 {
		b.t.Errorf("left: %v", left)
	}
	b.sound(id)
	return v
}

// found reports whether there are n names of a pattern.
func found(dir, pattern string, n int) func() bool {
	return func() bool {
		all, err := filepath.Glob(filepath.Join(dir, pattern))
		return err == nil && len(all) >= n
	}
}

// killedAt has processes drive a run by the test that calls it: one is killed at each stage that is met, and the last one ends.
func (b *bench) killedAt(id protocol.RunID, stages ...func() bool) (kills int) {
	t := b.t
	t.Helper()
	for i := 0; i <= len(stages); i++ {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "WF_TEST_DRIVE="+b.dir, "WF_TEST_COPIES="+b.e.Copies, "WF_TEST_RUN="+string(id))
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for over := false; !over; {
			select {
			case err := <-ended:
				if over = true; err != nil {
					t.Fatalf("%v\n%s", err, out.String())
				}
			case <-time.After(100 * time.Microsecond):
				if i < len(stages) && stages[i]() {
					if err := cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
					<-ended
					over, kills = true, kills+1
				}
			}
		}
	}
	t.Logf("%d kills", kills)
	return kills
}

// An agent goes on where it was cut off, in the copy that it worked in; where that is gone the run says so.
func TestC04AnAgentGoesOnInItsCopyOrNotAtAll(t *testing.T) {
	for gone, want := range map[bool]string{false: "two", true: ""} {
		b := newOwnBench(t)
		b.lay(map[string]string{"a": "one"})
		ctx, cancel := context.WithCancel(context.Background())
		b.e.Performers[protocol.ActPrompt] = performerFunc(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
			if len(turn.Transcript) > 0 && slices.ContainsFunc(turn.Transcript, func(x protocol.Entry) bool { return x.Type == protocol.EvToolCall }) {
				text, err := os.ReadFile(filepath.Join(turn.Workspace, "a"))
				out := string(text)
				return protocol.Conclusion{Text: &out}, err
			}
			if err := emit(ctx, protocol.ToolCall{Call: "1", Name: "write_file"}); err != nil {
				return protocol.Conclusion{}, err
			}
			if err := os.WriteFile(filepath.Join(turn.Workspace, "a"), []byte("two"), 0o644); err != nil {
				return protocol.Conclusion{}, err
			}
			cancel()
			<-ctx.Done()
			return protocol.Conclusion{}, ctx.Err()
		})
		yaml := `
wf: 1
name: agent
limits: {cost_usd: 1, duration: 1h}
roles:
  coder: {prompt: You code., tools: [write_file], model: a/b, workspace: own}
  merge: {merge: {of: coder}}
edges: [{from: START, to: coder}, {from: coder, to: merge}, {from: merge, to: END}]
`
		p := b.load(yaml)
		if got := rules.SemanticsOf(p.Workflow); got != 4 {
			t.Errorf("it pins semantics %d", got)
		}
		id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Source: []byte(yaml), Inputs: protocol.JSON("{}"), Workspace: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.e.Drive(ctx, id, engine.DriveOptions{By: "test"}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if gone {
			if err := os.RemoveAll(b.e.Copies); err != nil {
				t.Fatal(err)
			}
		}
		v := b.drive(id)
		if want == "" {
			if v.Status != protocol.Suspended || !strings.Contains(v.Reason, "is gone") {
				t.Errorf("%s: %s", v.Status, v.Reason)
			}
			continue
		}
		b.done(v)
		if got := b.tree()["a"]; got != want {
			t.Errorf("the workspace has %q", got)
		}
	}
}

// What is told of conflicts is bounded, by their number and by their lines.
func TestC04ConflictsAreToldUpToABound(t *testing.T) {
	b := newOwnBench(t)
	files := map[string]string{}
	for i := range 1003 {
		files[fmt.Sprintf("f%04d", i)] = "one\n"
	}
	b.lay(files)
	_, v := b.run(coders, map[string]any{"items": []any{"for f in f*; do echo x > $f; done", `for f in f*; do printf '%0200d\n' 1 > $f; done`}})
	got := b.merged(v, "merge#1")
	lines := 0
	for _, c := range got.Conflicts {
		lines += len(c.Lines)
	}
	if len(got.Conflicts) != 1000 || got.More != 3 || lines > 64<<10 || lines < 60<<10 {
		t.Errorf("%d conflicts and %d more, with %d bytes of lines", len(got.Conflicts), got.More, lines)
	}
}
