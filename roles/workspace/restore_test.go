package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// tree takes a directory as it is.
func (k kept) tree(t testing.TB, dir string) protocol.Link {
	t.Helper()
	root, _, err := workspace.Take(context.Background(), dir, whole(t, nil, func(b tree.Block) error { k[b.Link] = b.Data; return nil }))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func (k kept) diff(t testing.TB, from, to protocol.Link) (out []tree.Change) {
	t.Helper()
	for c, err := range tree.Diff(k.read, from, to) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func (k kept) restore(t testing.TB, dir string, from, to protocol.Link) workspace.Restored {
	t.Helper()
	out, err := workspace.Restore(context.Background(), dir, k.diff(t, from, to), workspace.Restoring{Open: k.open})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// C-3: a directory is restored to what it was, and back, whatever has changed in it.
func TestC03ADirectoryIsRestoredAndBack(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	for range 5 {
		k, dir := kept{}, project(t, r)
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		first := k.tree(t, dir)
		for range 1 + r.IntN(12) {
			mutate(t, r, dir)
		}
		second := k.tree(t, dir)
		for i, to := range []protocol.Link{first, second, first} {
			from := k.tree(t, dir)
			out := k.restore(t, dir, from, to)
			if got := k.tree(t, dir); got != to || len(out.Conflicts) > 0 {
				t.Fatalf("restore %d: %v\n%s", i, out.Conflicts, cmp.Diff(paths(t, k, to), paths(t, k, got)))
			}
			if again := k.restore(t, dir, from, to); len(again.Changed)+len(again.Conflicts) > 0 {
				t.Fatalf("once more: %+v", again)
			}
		}
	}
}

func paths(t testing.TB, k kept, root protocol.Link) (out []string) {
	for it, err := range tree.Walk(k.read, root) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s %d", it.Path, it.Mode, it.Size))
	}
	return out
}

func lay(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		at := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// C-3: what was never recorded is left alone, or kept before it is replaced.
func TestC03WhatWasNeverRecordedIsLeftAlone(t *testing.T) {
	k, dir := kept{}, t.TempDir()
	lay(t, dir, map[string]string{"changed": "1", "gone": "1", "same": "1", "d/in": "1", "link": "1", "dir": "1", "mine": "1"})
	first := k.tree(t, dir)
	if err := errors.Join(os.Remove(filepath.Join(dir, "same")), os.Remove(filepath.Join(dir, "dir"))); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, map[string]string{"changed": "2", "gone": "2", "new": "2", "e/in": "2", "link": "2", "mine": "2"})
	second := k.tree(t, dir)
	outside := filepath.Join(t.TempDir(), "outside")
	lay(t, dir, map[string]string{"changed": "person", "new": "person", "same": "1", "e/secret": "person"})
	lay(t, filepath.Dir(outside), map[string]string{"outside": "1"})
	if err := errors.Join(os.Remove(filepath.Join(dir, "gone")), os.Remove(filepath.Join(dir, "link")), os.Symlink(outside, filepath.Join(dir, "link")),
		os.Mkdir(filepath.Join(dir, "dir"), 0o755)); err != nil {
		t.Fatal(err)
	}
	out := k.restore(t, dir, second, first)
	var conflicts []string
	for _, c := range out.Conflicts {
		conflicts = append(conflicts, c.Path+": "+c.Why)
	}
	want := []string{"changed: it was changed since it was recorded", "dir: a directory lies there", "e: it holds what was never recorded",
		"gone: it was removed since it was recorded", "link: it was changed since it was recorded", "new: it was changed since it was recorded"}
	slices.Sort(conflicts)
	if diff := cmp.Diff(want, conflicts); diff != "" {
		t.Error(diff)
	}
	slices.Sort(out.Changed)
	if diff := cmp.Diff([]string{"e/in", "mine"}, out.Changed); diff != "" {
		t.Error(diff)
	}
	if b, err := os.ReadFile(outside); string(b) != "1" || err != nil {
		t.Errorf("the file behind a link is %q, %v", b, err)
	}

	taken := map[string]string{}
	out, err := workspace.Restore(t.Context(), dir, k.diff(t, second, first), workspace.Restoring{Open: k.open, Keep: func(path string, e tree.Entry, r io.Reader) error {
		b, err := io.ReadAll(r)
		taken[path] = string(e.Mode) + " " + string(b)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"changed": "file person", "new": "file person", "link": "link " + outside}, taken); diff != "" {
		t.Error(diff)
	}
	if len(out.Conflicts) != 2 { // the directories
		t.Error(out.Conflicts)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "changed")); string(b) != "1" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// C-3: permissions stay, but for that to execute.
func TestC03PermissionsStay(t *testing.T) {
	k, dir := kept{}, t.TempDir()
	at := filepath.Join(dir, "key")
	lay(t, dir, map[string]string{"key": "1"})
	first := k.tree(t, dir)
	if err := errors.Join(os.WriteFile(at, []byte("2"), 0o600), os.Chmod(at, 0o750)); err != nil {
		t.Fatal(err)
	}
	second := k.tree(t, dir)
	for to, want := range map[protocol.Link]os.FileMode{first: 0o640, second: 0o750} {
		k.restore(t, dir, k.tree(t, dir), to)
		if s, err := os.Stat(at); err != nil || to == first && s.Mode() != want || to == second && s.Mode()&0o111 == 0 {
			t.Error(s.Mode(), err)
		}
	}
}

// C-3: an editor that saves meanwhile loses nothing, whether it writes anew beside the file or into it.
func TestC03AnEditorThatSavesMeanwhileLosesNothing(t *testing.T) {
	for _, into := range []bool{false, true} {
		k, dir := kept{}, t.TempDir()
		at := filepath.Join(dir, "file")
		lay(t, dir, map[string]string{"file": strings.Repeat("1", 40_000)})
		first := k.tree(t, dir)
		lay(t, dir, map[string]string{"file": strings.Repeat("2", 40_000)})
		second := k.tree(t, dir)
		for round := range 25 {
			if err := os.WriteFile(at, []byte(strings.Repeat("2", 40_000)), 0o644); err != nil {
				t.Fatal(err)
			}
			var edit sync.WaitGroup
			saved := fmt.Sprint("saved ", round, strings.Repeat("x", 20_000))
			begun := make(chan struct{})
			begin := sync.OnceFunc(func() { close(begun) })
			opening := workspace.Restoring{Open: func(it tree.Item) (io.ReadCloser, error) { begin(); return k.open(it) }}
			edit.Go(func() {
				<-begun
				for range rand.IntN(4000) { // at any moment of the restoring
					runtime.Gosched()
				}
				if into {
					if err := os.WriteFile(at, []byte(saved), 0o644); err != nil {
						t.Error(err)
					}
					return
				}
				if err := errors.Join(os.WriteFile(at+"~", []byte(saved), 0o644), os.Rename(at+"~", at)); err != nil {
					t.Error(err)
				}
			})
			for i := range 6 {
				from, to := second, first
				if i%2 == 1 {
					from, to = first, second
				}
				if _, err := workspace.Restore(t.Context(), dir, k.diff(t, from, to), opening); err != nil {
					t.Fatal(err)
				}
			}
			edit.Wait()
			found := false
			all, err := filepath.Glob(filepath.Join(dir, "*"))
			for _, path := range all {
				b, rerr := os.ReadFile(path)
				found, err = found || string(b) == saved, errors.Join(err, rerr)
			}
			if !found || err != nil {
				t.Fatalf("into %v, round %d: what was saved is nowhere, %v", into, round, err)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".*"))
			if len(left) > 0 || err != nil {
				t.Fatal(left, err)
			}
		}
	}
}

// C-3: a process that is killed leaves the old or the new state of each file; the next one goes on, or back.
func TestC03AKillLeavesOldOrNewFiles(t *testing.T) {
	dir, k := os.Getenv("WF_TEST_RESTORE"), kept{}
	const files = 300
	state := func(n int) map[string]string {
		out := map[string]string{}
		for i := range files {
			if i%7 != n {
				out[fmt.Sprintf("d%d/f%d", i%5, i)] = fmt.Sprintf("%d %d", n, i)
			}
		}
		return out
	}
	var trees [2]protocol.Link
	for n := range trees {
		at := t.TempDir()
		lay(t, at, state(n))
		trees[n] = k.tree(t, at)
	}
	if dir != "" { // the process that is killed: it writes a byte behind each change
		said := os.NewFile(3, "said")
		for n := 0; ; n++ {
			each := func(int) {
				if _, err := said.Write([]byte{'.'}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := workspace.Restore(t.Context(), dir, k.diff(t, trees[n%2], trees[1-n%2]), workspace.Restoring{Open: k.open, Each: each}); err != nil {
				t.Fatal(err)
			}
		}
	}
	changes := len(k.diff(t, trees[0], trees[1]))
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	dir = t.TempDir()
	lay(t, dir, state(0))
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestC03AKillLeavesOldOrNewFiles$")
		cmd.Env = append(os.Environ(), "WF_TEST_RESTORE="+dir)
		said, tell, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{tell}
		err = cmd.Start()
		if err = errors.Join(err, tell.Close()); err != nil {
			t.Fatal(err)
		}
		old, other := state(0), state(1)
		if round%2 == 0 { // as files are written, in one direction or the other
			_, err = io.ReadFull(said, make([]byte, 1+rand.IntN(3*changes)))
		} else { // as they change places
			watched := fmt.Sprintf("d%d/f%d", 2, 2+35*rand.IntN(files/35))
			go io.Copy(io.Discard, said) // until the process has ended
			for text := old[watched]; text == old[watched] && err == nil; {
				var b []byte
				if b, err = os.ReadFile(filepath.Join(dir, watched)); err == nil {
					text = string(b)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		for path := range old {
			b, err := os.ReadFile(filepath.Join(dir, path))
			if _, may := other[path]; errors.Is(err, os.ErrNotExist) && !may {
				continue
			}
			if err != nil || string(b) != old[path] && string(b) != other[path] {
				t.Fatalf("round %d: %s is %q, %v", round, path, b, err)
			}
		}
		n := round % 2
		for _, from := range trees { // it was on the way from one to the other, or back
			if out := k.restore(t, dir, from, trees[n]); len(out.Conflicts) > 0 {
				t.Fatalf("round %d: %v", round, out.Conflicts)
			}
		}
		if got := k.tree(t, dir); got != trees[n] {
			t.Fatalf("round %d:\n%s", round, cmp.Diff(paths(t, k, trees[n]), paths(t, k, got)))
		}
		k.restore(t, dir, trees[n], trees[0])
	}
}
