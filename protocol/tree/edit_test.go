package tree_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
	"wf/protocol/tree"
)

// edited is a tree by the paths of its files, and of directories in which nothing is.
type edited map[string]string

func (k edited) tree(t *testing.T, blocks map[protocol.Link][]byte) protocol.Link {
	t.Helper()
	var dir func(prefix string) tree.Entry
	dir = func(prefix string) tree.Entry {
		out := map[string]tree.Entry{}
		for path, text := range k {
			rest, below := strings.CutPrefix(path, prefix)
			if !below || rest == "" {
				continue
			}
			name, _, deeper := strings.Cut(rest, "/")
			if deeper {
				if _, done := out[name]; !done {
					out[name] = tree.Entry{}
					e := dir(prefix + name + "/")
					e.Name = name
					out[name] = e
				}
				continue
			}
			b := tree.Raw([]byte(text))
			out[name] = tree.Entry{Name: name, Mode: tree.File, Link: b.Link, Size: int64(len(text))}
		}
		var entries []tree.Entry
		e := tree.Entry{Mode: tree.Dir}
		for _, x := range out {
			entries = append(entries, x)
			e.Size += x.Size
		}
		slices.SortFunc(entries, func(a, b tree.Entry) int { return strings.Compare(a.Name, b.Name) })
		made, err := tree.Encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range made {
			blocks[b.Link] = b.Data
		}
		e.Link = made[len(made)-1].Link
		return e
	}
	return dir("").Link
}

// What the changes between two trees make of the first is the second; with some of them left out, what is to be expected.
func TestATreeIsEdited(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "b", "ab", "é", "z"}
	random := func() edited {
		k := edited{}
		for range r.IntN(12) {
			path := names[r.IntN(len(names))]
			for r.IntN(2) == 0 {
				path += "/" + names[r.IntN(len(names))]
			}
			if !slices.ContainsFunc(slices.Collect(func(yield func(string) bool) {
				for p := range k {
					if !yield(p) {
						return
					}
				}
			}), func(p string) bool { return strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/") }) {
				k[path] = fmt.Sprint(r.IntN(3))
			}
		}
		return k
	}
	for range 2000 {
		blocks := map[protocol.Link][]byte{}
		read := func(l protocol.Link) ([]byte, error) {
			b, ok := blocks[l]
			if !ok {
				return nil, protocol.ErrNotFound
			}
			return b, nil
		}
		put := func(b tree.Block) error { blocks[b.Link] = b.Data; return nil }
		from, to := random(), random()
		a, b := from.tree(t, blocks), to.tree(t, blocks)
		edits := map[string]tree.Entry{}
		for c, err := range tree.Diff(read, a, b) {
			if err != nil {
				t.Fatal(err)
			}
			edits[c.Path] = c.After
		}
		got, err := tree.Edit(read, a, edits, put)
		if err != nil || got != b {
			t.Fatalf("%v to %v: %v, want the tree %s, got %s", from, to, err, b, got)
		}
	}
}

func TestAnEditLeavesWhatItDoesNotName(t *testing.T) {
	blocks := map[protocol.Link][]byte{}
	read := func(l protocol.Link) ([]byte, error) { return blocks[l], nil }
	put := func(b tree.Block) error { blocks[b.Link] = b.Data; return nil }
	root := edited{"a": "1", "d/x": "1", "d/y": "1", "e/z": "1"}.tree(t, blocks)
	b := tree.Raw([]byte("2"))
	blocks[b.Link] = b.Data
	file := tree.Entry{Mode: tree.File, Link: b.Link, Size: 1}
	got, err := tree.Edit(read, root, map[string]tree.Entry{"d": {}, "d/x": {}, "e": file, "n/m": file, "none/x": {}, "a/b": file}, put)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for it, err := range tree.Walk(read, got) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, it.Path)
	}
	if d := cmp.Diff([]string{"a", "d/y", "e", "n/m"}, paths); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{".git/x", "a//b", "../x"} {
		if _, err := tree.Edit(read, root, map[string]tree.Entry{bad: file}, put); protocol.CodeOf(err) != protocol.ErrInvalidBlock.Code {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
