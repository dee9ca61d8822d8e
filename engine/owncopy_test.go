package engine_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
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

func (b *bench) put(files map[string]string) {
	b.t.Helper()
	for name, text := range files {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
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
	b.put(map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "gone": "x", "d/keep": "k", ".gitignore": "out\n", "out/big": "ignored"})
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
	b.put(map[string]string{"a": "1\n2\n3\n", "b": "b\n"})
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
		b.put(map[string]string{"a": "1\n2\n3\n4\n5\n", "b": "b\n"})
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
