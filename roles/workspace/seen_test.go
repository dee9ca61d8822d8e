package workspace_test

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"

	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"wf/protocol/tree"
	"wf/roles/workspace"
)

// whole takes all of a directory.
func whole(b testing.TB, seen *workspace.Seen, put func(tree.Block) error) workspace.Taking {
	rules, err := tree.NewIgnored(func(string) ([]byte, error) { return nil, nil }, tree.Globs{}, tree.Globs{})
	if err != nil {
		b.Fatal(err)
	}
	return workspace.Taking{Choose: rules, MaxSize: 1 << 40, MaxTotal: 1 << 40, MaxFiles: 1 << 30, Put: put, Whole: true, Seen: seen}
}

func manyFiles(b testing.TB, dirs, files int) string {
	top := b.TempDir()
	for i := range dirs {
		dir := filepath.Join(top, fmt.Sprintf("package-%03d/sub", i))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			b.Fatal(err)
		}
		for j := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("some-file-%03d.go", j)), fmt.Appendf(nil, "%d %d", i, j), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
	return top
}

// C-1: an unchanged directory of 50,000 files: in a process that knows it, and at the first use of one.
func BenchmarkC01Unchanged(b *testing.B) {
	top := manyFiles(b, 1000, 50)
	seen := workspace.NewSeen(0)
	none := func(tree.Block) error { return nil }
	for range 2 {
		if _, n, err := workspace.Take(context.Background(), top, whole(b, seen, none)); err != nil || n != 50_000 {
			b.Fatal(n, err)
		}
	}
	file := seen.Encode()
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := workspace.Take(context.Background(), top, whole(b, seen, none)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			seen, err := workspace.DecodeSeen(file)
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := workspace.Take(context.Background(), top, whole(b, seen, none)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(file)), "file-bytes")
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			seen.Encode()
		}
	})
}

// What was seen survives being written; a file that was damaged anywhere is refused.
func TestWhatWasSeenIsWrittenAndRead(t *testing.T) {
	top := project(t, rand.New(rand.NewPCG(1, 1)))
	seen := workspace.NewSeen(0)
	tick(t)
	none := func(tree.Block) error { return nil }
	root, _, err := workspace.Take(t.Context(), top, whole(t, seen, none))
	if err != nil {
		t.Fatal(err)
	}
	file := seen.Encode()
	again, err := workspace.DecodeSeen(file)
	if err != nil || again.Root != root || !bytes.Equal(again.Encode(), file) {
		t.Fatal(err, again)
	}
	if got, _, err := workspace.Take(t.Context(), top, whole(t, again, func(b tree.Block) error {
		if len(b.Data) > 64<<10 {
			t.Errorf("%d bytes were read again", len(b.Data))
		}
		return nil
	})); err != nil || got != root {
		t.Fatal(got, err)
	}
	for i := 0; i < len(file); i += 1 + i/50 {
		bad := bytes.Clone(file)
		bad[i] ^= 1
		if _, err := workspace.DecodeSeen(bad); !errors.Is(err, workspace.ErrSeen) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if _, err := workspace.DecodeSeen(file[:i]); !errors.Is(err, workspace.ErrSeen) {
			t.Fatalf("%d bytes: %v", i, err)
		}
	}
}

// project is a directory with what directories of people have: files of rules, programs, links, long files, empty
// directories, and names that few expect.
func project(t *testing.T, r *rand.Rand) string {
	top := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	dirs := []string{top}
	names := []string{"a", "b.go", "ä", "日本.txt", "a b", "-x", "new\nline", "\x01", `back\slash`, "a:b", "$(x)", "node_modules", "build", "x.o", "%s", "e\u0301"}
	for i := range 60 {
		dir := dirs[r.IntN(len(dirs))]
		name := fmt.Sprintf("%s%d", names[r.IntN(len(names))], r.IntN(3))
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		switch r.IntN(6) {
		case 0, 1:
			must(os.Mkdir(at, 0o777))
			dirs = append(dirs, at)
		case 2:
			must(os.Symlink([]string{"a", "../x", "/etc/passwd", "nowhere", "loop/loop"}[r.IntN(5)], at))
		case 3:
			must(os.WriteFile(at, []byte("#!/bin/sh\n"), 0o755))
		case 4:
			long := make([]byte, 1+r.IntN(300<<10))
			for j := range long {
				long[j] = byte(r.Uint32())
			}
			must(os.WriteFile(at, long, 0o644))
		default:
			must(os.WriteFile(at, fmt.Appendf(nil, "%d", i), 0o644))
		}
	}
	must(os.WriteFile(filepath.Join(top, ".gitignore"), []byte("*.o*\n/build0/\n!b.go1\nnode_modules1\n"), 0o644))
	must(os.WriteFile(filepath.Join(dirs[r.IntN(len(dirs))], ".gitignore"), []byte("a1\n!x.o2\n"), 0o644))
	return top
}

// C-1: git write-tree has the same entries, with the same ignore set.
func TestC01GitHasTheSameTree(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 6 {
		top := project(t, r)
		blocks := map[protocol.Link][]byte{}
		taking := whole(t, nil, func(b tree.Block) error { blocks[b.Link] = b.Data; return nil })
		rules, err := tree.NewIgnored(workspace.RulesOf(top), tree.Globs{}, tree.Globs{})
		if err != nil {
			t.Fatal(err)
		}
		taking.Choose = rules
		root, _, err := workspace.Take(t.Context(), top, taking)
		if err != nil {
			t.Fatal(err)
		}
		read := func(l protocol.Link) ([]byte, error) { return blocks[l], nil }
		var got []string
		for it, err := range tree.Walk(read, root) {
			if err != nil {
				t.Fatal(err)
			}
			f, err := tree.Open(read, it.Entry)
			if err != nil {
				t.Fatal(err)
			}
			h := sha1.New()
			fmt.Fprintf(h, "blob %d\x00", it.Size)
			if _, err := io.Copy(h, f); err != nil {
				t.Fatal(err)
			}
			mode := map[tree.Mode]string{tree.File: "100644", tree.Exec: "100755", tree.Link: "120000"}[it.Mode]
			got = append(got, fmt.Sprintf("%s blob %x\t%s", mode, h.Sum(nil), it.Path))
		}
		git := func(args ...string) string {
			cmd := exec.Command("git", append([]string{"-c", "core.excludesFile=/dev/null", "-c", "core.autocrlf=false", "-c", "core.fileMode=true"}, args...)...)
			cmd.Dir = top
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(args, err, stderr.String())
			}
			return string(out)
		}
		git("init", "-q", "--template=")
		git("add", "-A")
		want := strings.Split(strings.Trim(git("ls-tree", "-r", "-z", strings.TrimSpace(git("write-tree"))), "\x00"), "\x00")
		byPath := func(a, b string) int { return strings.Compare(a[strings.Index(a, "\t"):], b[strings.Index(b, "\t"):]) }
		slices.SortFunc(want, byPath)
		slices.SortFunc(got, byPath)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// C-1: what is taken with what was seen before is what is taken without, however the files change; unchanged ones are not
// put again.
func TestC01WhatWasSeenChangesNoTree(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	top := project(t, r)
	if err := os.WriteFile(filepath.Join(top, "file"), []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	seen := workspace.NewSeen(0)
	for range 40 {
		tick(t)
		blocks := 0
		got, _, err := workspace.Take(t.Context(), top, whole(t, seen, func(tree.Block) error { blocks++; return nil }))
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := workspace.Take(t.Context(), top, whole(t, nil, func(tree.Block) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		if got != want || seen.Root != want {
			t.Fatalf("%s, seen %s, not %s", got, seen.Root, want)
		}
		blocks = 0
		if _, _, err := workspace.Take(t.Context(), top, whole(t, seen, func(b tree.Block) error {
			if n, err := tree.Decode(b.Data); err == nil && len(n.Entries) > 0 && n.Entries[0].Mode == tree.Link || len(b.Data) < 20 { // links are read each time
				return nil
			}
			blocks++
			return nil
		})); err != nil || blocks > 0 {
			t.Fatalf("%d blocks of unchanged files, %v", blocks, err)
		}
		mutate(t, r, top)
	}
}

// tick waits for the next tick of the clock of the file system.
func tick(t *testing.T) {
	dir := t.TempDir()
	var first time.Time
	for i := 0; ; i++ {
		at := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = s.ModTime()
		} else if s.ModTime().After(first) {
			return
		}
	}
}

// mutate changes something below a directory, also so that little of its stat tells of it.
func mutate(t *testing.T, r *rand.Rand, top string) {
	var all []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if path != top {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	at := all[r.IntN(len(all))]
	s, err := os.Lstat(at)
	if err != nil {
		t.Fatal(err)
	}
	switch how := r.IntN(6); {
	case how == 0:
		err = os.RemoveAll(at)
	case how == 1:
		err = os.Rename(at, at+"~")
	case how == 2 && s.Mode().IsRegular():
		err = os.Chmod(at, s.Mode().Perm()^0o100)
	case how == 3 && s.Mode().IsRegular(): // same size, and its time is put back
		b, rerr := os.ReadFile(at)
		if len(b) > 0 {
			b[0]++
		}
		err = errors.Join(rerr, os.WriteFile(at, b, 0o644), os.Chtimes(at, s.ModTime(), s.ModTime()))
	case how == 4 && s.IsDir():
		err = os.WriteFile(filepath.Join(at, "new"), []byte("new"), 0o644)
	default:
		err = os.WriteFile(filepath.Join(top, "file"), fmt.Append(nil, r.Uint64()), 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}
