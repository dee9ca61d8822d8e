package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// kinds are what random trees hold under few names, so that two of them have most paths in common and most of these of another kind.
var kinds = []string{"", "file", "other file", "exec", "link", "dir", "dir"}

// growth draws what is to lie at paths.
func growth(r *rapid.T, label string) map[string]string {
	out := map[string]string{}
	var grow func(dir string, depth int)
	grow = func(dir string, depth int) {
		for _, name := range []string{"a", "b", "c"} {
			p := path.Join(dir, name)
			kind := rapid.SampledFrom(kinds[:len(kinds)-2*(depth/3)]).Draw(r, label+" "+p)
			if kind != "" {
				out[p] = kind
			}
			if kind == "dir" {
				grow(p, depth+1)
			}
		}
	}
	grow("", 1)
	return out
}

// plant makes a directory hold that, and nothing else.
func plant(t testing.TB, dir string, what map[string]string) {
	t.Helper()
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	for _, p := range slices.Sorted(maps.Keys(what)) {
		at := filepath.Join(dir, p)
		switch what[p] {
		case "dir":
			err = errors.Join(err, os.Mkdir(at, 0o755))
		case "link":
			err = errors.Join(err, os.Symlink("a", at))
		case "exec":
			err = errors.Join(err, os.WriteFile(at, []byte("exec"), 0o755))
		default:
			err = errors.Join(err, os.WriteFile(at, []byte(what[p]), 0o644))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// found is what a directory holds.
func found(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		p, err := filepath.Rel(dir, at)
		switch {
		case d.IsDir():
			out[p] = "dir"
		case d.Type()&os.ModeSymlink != 0:
			out[p] = "link"
		default:
			b, rerr := os.ReadFile(at)
			out[p], err = string(b), errors.Join(err, rerr)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func conflicts(out workspace.Restored) []string {
	var all []string
	for _, c := range out.Conflicts {
		all = append(all, c.Path+": "+c.Why)
	}
	slices.Sort(all)
	return all
}

func told(out workspace.Restored) string {
	return fmt.Sprintf("changed %q\nkept %q\nleft alone %q", slices.Sorted(slices.Values(out.Changed)), slices.Sorted(slices.Values(out.Kept)), conflicts(out))
}

// F503: whatever the kinds are that paths change between, in directories within each other, files go from one state to the other
// and back; where nothing was changed yet, or all, there is nothing to do; a restoring that was cut off goes on, or back.
func TestF503PathsChangeTheirKind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	rapid.Check(t, func(r *rapid.T) {
		k := kept{}
		var trees [2]protocol.Link
		states := [2]map[string]string{growth(r, "one"), growth(r, "two")}
		for i := range trees {
			plant(t, dir, states[i])
			trees[i] = k.tree(t, dir)
		}
		n := 1 // in which state the directory is
		restore := func(what string, to, changed int) {
			out := k.restore(t, dir, trees[1-to], trees[to])
			if d := cmp.Diff(states[to], found(t, dir)); d != "" || len(out.Conflicts) > 0 || changed >= 0 && len(out.Changed) != changed {
				r.Fatalf("%s: %s\n− as it should be, + as it is:\n%s", what, told(out), d)
			}
			n = to
		}
		restore("all is there already", n, 0)
		restore("the other state", 1-n, -1)
		restore("and back", 1-n, -1)
		changes := k.diff(t, trees[n], trees[1-n])
		if len(changes) == 0 {
			return
		}
		stop, cut := int64(rapid.IntRange(0, len(changes)).Draw(r, "cut off behind")), errors.New("cut off")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var opened atomic.Int64
		_, err := workspace.Restore(ctx, dir, changes, workspace.Restoring{Each: func(done int) {
			if int64(done) > stop {
				cancel()
			}
		}, Open: func(it tree.Item) (io.ReadCloser, error) {
			if opened.Add(1) > stop {
				return nil, cut
			}
			return k.open(it)
		}})
		if err != nil && !errors.Is(err, cut) && !errors.Is(err, context.Canceled) {
			r.Fatal(err)
		}
		if rapid.Bool().Draw(r, "goes on") {
			n = 1 - n
		}
		restore("behind a cut", n, -1)
	})
}

// F503: a dry one tells what becomes of each path, whatever lies there.
func TestF503ADryOneTellsTheTruth(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	rapid.Check(t, func(r *rapid.T) {
		k := kept{}
		plant(t, dir, growth(r, "from"))
		from := k.tree(t, dir)
		plant(t, dir, growth(r, "to"))
		to := k.tree(t, dir)
		was := growth(r, "there")
		for range rapid.IntRange(0, 3).Draw(r, "own") {
			was[rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "own file")] = "a person's"
		}
		for p := range was {
			for up := path.Dir(p); up != "."; up = path.Dir(up) {
				if was[up] != "dir" {
					delete(was, p)
				}
			}
		}
		plant(t, dir, was)
		o := workspace.Restoring{Open: k.open}
		if rapid.Bool().Draw(r, "kept") {
			o.Keep = func(string, tree.Entry, io.Reader) error { return nil }
		}
		o.Dry = true
		changes := k.diff(t, from, to)
		dry, err := workspace.Restore(t.Context(), dir, changes, o)
		if err != nil {
			r.Fatal(err)
		}
		if d := cmp.Diff(was, found(t, dir)); d != "" {
			r.Fatalf("a dry one changes files:\n%s", d)
		}
		o.Dry = false
		done, err := workspace.Restore(t.Context(), dir, changes, o)
		if err != nil {
			r.Fatal(err)
		}
		if d := cmp.Diff(told(dry), told(done)); d != "" {
			r.Fatalf("− as it was foretold, + as it came:\n%s", d)
		}
	})
}
