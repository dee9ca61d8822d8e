package workspace_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// C-3: files are restored side by side, and told in their order; where one of them fails, what was written beside the others is gone, and the
// same changes go on.
func TestC03FilesAreRestoredSideBySide(t *testing.T) {
	for _, c := range []struct{ dirs, files int }{{1, 1}, {1, 15}, {1, 16}, {1, 17}, {1, 255}, {1, 256}, {1, 257}, {127, 1}, {128, 1}, {129, 2}} {
		t.Run(fmt.Sprintf("%d of %d", c.dirs, c.files), func(t *testing.T) {
			k, dir := kept{}, t.TempDir()
			state := func(n int) map[string]string {
				out := map[string]string{}
				for d := range c.dirs {
					for f := range c.files {
						out[fmt.Sprintf("d%03d/f%03d", d, f)] = fmt.Sprint(n, " ", d, " ", f)
					}
				}
				return out
			}
			lay(t, dir, state(1))
			first := k.tree(t, dir)
			lay(t, dir, state(2))
			second := k.tree(t, dir)
			changes := k.diff(t, second, first)

			broken, failed := changes[len(changes)/2].Path, errors.New("cannot be read")
			_, err := workspace.Restore(t.Context(), dir, changes, workspace.Restoring{Open: func(it tree.Item) (io.ReadCloser, error) {
				if it.Path == broken {
					return nil, failed
				}
				return k.open(it)
			}})
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), broken) {
				t.Fatalf("%v, want the error of %s", err, broken)
			}
			err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
				if err == nil && strings.HasPrefix(e.Name(), ".") {
					t.Errorf("%s is left", path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			var mu sync.Mutex
			var told []int
			out, err := workspace.Restore(t.Context(), dir, changes, workspace.Restoring{Open: k.open, Each: func(done int) {
				if !mu.TryLock() {
					t.Error("two calls at once")
					return
				}
				told = append(told, done)
				mu.Unlock()
			}})
			if err != nil || len(out.Conflicts) > 0 || k.tree(t, dir) != first {
				t.Fatalf("%v, %v", err, out.Conflicts)
			}
			if !slices.IsSorted(out.Changed) || !slices.IsSorted(told) || len(told) != len(changes) {
				t.Errorf("%d changed in another order than %d, or not told one by one: %v", len(out.Changed), len(changes), told)
			}
		})
	}
}

// C-3: whatever a process that was killed has left of a file, the next one goes on, or back, and none of it stays; in directories that are
// small or large, for files that are few or many.
func TestC03WhatAKillLeavesIsEnded(t *testing.T) {
	const old, now, half, mine = "old content", "new content, longer", "new con", "a person's"
	type left struct{ file, fresh, aside string } // "" is nothing
	kills := map[string]struct {
		left
		back, forth string // what lies there afterwards
	}{
		"as it was written":                {left{old, half, ""}, old, now},
		"before it was made":               {left{old, "", ""}, old, now},
		"before it was on disk":            {left{old, now, ""}, old, now},
		"before it changed places":         {left{old, "", now}, old, now},
		"behind it":                        {left{now, "", old}, old, now},
		"when it was put in place":         {left{now, "", ""}, old, now},
		"when it was moved out":            {left{"", "", old}, old, now},
		"when a person's came out":         {left{now, "", mine}, mine, mine},
		"and a person saved it thereafter": {left{mine, now, ""}, mine, mine},
	}
	for _, size := range []struct {
		name          string
		files, beside int
	}{{"few", 1, 0}, {"many", 40, 0}, {"many in a large directory", 40, 1500}} {
		for name, kill := range kills {
			for _, back := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, back %t", size.name, name, back), func(t *testing.T) {
					k, dir := kept{}, t.TempDir()
					all := func(text string) map[string]string {
						out := map[string]string{}
						for i := range size.files {
							out[fmt.Sprint("d/f", i)] = text
						}
						for i := range size.beside {
							out[fmt.Sprintf("d/%s%d", strings.Repeat("n", 200), i)] = ""
						}
						return out
					}
					lay(t, dir, all(old))
					first := k.tree(t, dir)
					lay(t, dir, all(now))
					second := k.tree(t, dir)
					for i := range size.files {
						name := fmt.Sprint("f", i)
						hash := protocol.RawLink([]byte(name)).String()[50:]
						for as, text := range map[string]string{name: kill.file, ".wf-new-" + hash: kill.fresh, ".wf-old-" + hash: kill.aside} {
							at := filepath.Join(dir, "d", as)
							err := os.WriteFile(at, []byte(text), 0o644)
							if text == "" {
								err = os.Remove(at)
							}
							if err != nil {
								t.Fatal(err)
							}
						}
					}
					from, to, want := first, second, kill.forth
					if back {
						from, to, want = second, first, kill.back
					}
					out := k.restore(t, dir, from, to)
					if conflicts := len(out.Conflicts); conflicts != 0 && want != mine || want == mine && conflicts != size.files {
						t.Fatal(out.Conflicts)
					}
					for i := range size.files {
						if b, err := os.ReadFile(filepath.Join(dir, "d", fmt.Sprint("f", i))); err != nil || string(b) != want {
							t.Fatalf("%q, %v, want %q", b, err, want)
						}
					}
					if rest, err := filepath.Glob(filepath.Join(dir, "d", ".*")); len(rest) > 0 || err != nil {
						t.Fatal(rest, err)
					}
				})
			}
		}
	}
}

// C-3: directories come and go with many files, and take the places of files, and files theirs.
func TestC03DirectoriesComeAndGoWithManyFiles(t *testing.T) {
	k, dir := kept{}, t.TempDir()
	one, two := map[string]string{}, map[string]string{}
	for i := range 150 {
		one[fmt.Sprintf("a%d/deep/er/f", i)], one[fmt.Sprintf("x%d", i)] = "1", "1"
		two[fmt.Sprintf("a%d", i)], two[fmt.Sprintf("x%d/f", i)], two[fmt.Sprintf("new%d/in/f", i)] = "2", "2", "2"
	}
	lay(t, dir, one)
	first := k.tree(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, two)
	second := k.tree(t, dir)
	for i, to := range []protocol.Link{first, second, first} {
		out := k.restore(t, dir, k.tree(t, dir), to)
		if got := k.tree(t, dir); got != to || len(out.Conflicts) > 0 {
			t.Fatalf("restore %d: %v", i, out.Conflicts)
		}
	}
}
