package tree

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// files are a tree by its paths. What begins with "-> " is a link, with "#!" a file that may be executed, "?" is omitted, and a
// path with a slash at its end is an empty directory.
type files map[string]string

func (s shelf) lay(t testing.TB, fs files) protocol.Link {
	t.Helper()
	below := map[string]files{}
	var entries []Entry
	for path, text := range fs {
		dir, rest, deep := strings.Cut(path, "/")
		if deep {
			if below[dir] == nil {
				below[dir] = files{}
			}
			if rest != "" {
				below[dir][rest] = text
			}
			continue
		}
		e := s.file(t, path, []byte(text))
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			e = s.file(t, path, []byte(to))
			e.Mode = Link
		} else if strings.HasPrefix(text, "#!") {
			e.Mode = Exec
		} else if text == "?" {
			e = Entry{Name: path, Mode: Omitted, Why: WhySecret}
		}
		entries = append(entries, e)
	}
	for dir, fs := range below {
		l := s.lay(t, fs)
		var size int64
		in, err := Entries(s.read, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range in {
			if e.Mode != Link && e.Mode != Omitted {
				size += e.Size
			}
		}
		entries = append(entries, Entry{Name: dir, Mode: Dir, Link: l, Size: size})
	}
	return s.dir(t, entries...)
}

// shown is a tree as files.
func (s shelf) shown(t testing.TB, root protocol.Link) files {
	t.Helper()
	out := files{}
	var walk func(dir protocol.Link, path string)
	walk = func(dir protocol.Link, path string) {
		entries, err := Entries(s.read, dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 && path != "" {
			out[path] = ""
		}
		for _, e := range entries {
			switch e.Mode {
			case Dir:
				walk(e.Link, path+e.Name+"/")
			case Omitted:
				out[path+e.Name] = "?"
			default:
				r, err := Open(s.read, e)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				text := string(b)
				if e.Mode == Link {
					text = "-> " + text
				}
				out[path+e.Name] = text
			}
		}
	}
	walk(root, "")
	return out
}

func (s shelf) merge(t testing.TB, base protocol.Link, sides ...protocol.Link) (protocol.Link, []string) {
	t.Helper()
	l, conflicts, err := ThreeWay(s.read, s.put, base, sides)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range conflicts {
		out = append(out, fmt.Sprintf("%s %s %d", c.Path, c.Kind, c.Side))
	}
	return l, out
}

func TestC04WhatTwoSidesDoToAPath(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n"
	long := strings.Repeat("a line of a file\n", MergeMax/17+1)
	for name, c := range map[string]struct {
		base, ours, theirs, want files
		conflicts                string
	}{
		"one side":               {files{"a": "1", "b": "1"}, files{"a": "2", "b": "1"}, files{"a": "1", "b": "2"}, files{"a": "2", "b": "2"}, ""},
		"both the same":          {files{"a": "1"}, files{"a": "2", "n": "n"}, files{"a": "2", "n": "n"}, files{"a": "2", "n": "n"}, ""},
		"lines":                  {files{"a": text}, files{"a": "1x\n2\n3\n4\n5\n"}, files{"a": "1\n2\n3\n4\n5x\n"}, files{"a": "1x\n2\n3\n4\n5x\n"}, ""},
		"the same lines":         {files{"a": text}, files{"a": "1\nx\n3\n4\n5\n"}, files{"a": "1\ny\n3\n4\nz\n"}, files{"a": "1\nx\n3\n4\nz\n"}, "a lines 1"},
		"lines that touch":       {files{"a": text}, files{"a": "1\nx\n3\n4\n5\n"}, files{"a": "1\n2\ny\n4\n5\n"}, files{"a": "1\nx\n3\n4\n5\n"}, "a lines 1"},
		"binary":                 {files{"a": "\x001\n"}, files{"a": "\x002\n"}, files{"a": "\x003\n"}, files{"a": "\x002\n"}, "a binary 1"},
		"too long":               {files{"a": "1\n" + long + "1\n"}, files{"a": "2\n" + long + "1\n"}, files{"a": "1\n" + long + "2\n"}, files{"a": "2\n" + long + "1\n"}, "a size 1"},
		"both made one":          {files{}, files{"a": "1"}, files{"a": "2"}, files{"a": "1"}, "a add 1"},
		"removed by one":         {files{"a": "1", "b": "1"}, files{"b": "1"}, files{"a": "1"}, files{}, ""},
		"removed and changed":    {files{"a": "1"}, files{}, files{"a": "2"}, files{}, "a delete 1"},
		"changed and removed":    {files{"a": "1"}, files{"a": "2"}, files{}, files{"a": "2"}, "a delete 1"},
		"mode and content":       {files{"a": "1\n2\n3\n"}, files{"a": "1\n2\nx\n"}, files{"a": "#!\n2\n3\n"}, files{"a": "#!\n2\nx\n"}, ""},
		"links":                  {files{"a": "-> 1"}, files{"a": "-> 2"}, files{"a": "-> 3"}, files{"a": "-> 2"}, "a link 1"},
		"link and file":          {files{"a": "1"}, files{"a": "-> 2"}, files{"a": "3"}, files{"a": "-> 2"}, "a type 1"},
		"file and directory":     {files{"a": "1"}, files{"a": "2"}, files{"a/b": "1"}, files{"a": "2"}, "a type 1"},
		"a directory comes":      {files{"a": "1"}, files{"a": "1"}, files{"a/b": "1"}, files{"a/b": "1"}, ""},
		"in a directory":         {files{"d/a": "1", "d/b": "1"}, files{"d/a": "2", "d/b": "1"}, files{"d/a": "1", "d/b": "2"}, files{"d/a": "2", "d/b": "2"}, ""},
		"a directory goes":       {files{"d/a": "1", "k": ""}, files{"k": ""}, files{"d/a": "1", "d/b": "2", "k": ""}, files{"d/b": "2", "k": ""}, ""},
		"a changed one goes":     {files{"d/a": "1", "k": ""}, files{"d/a": "2", "k": ""}, files{"k": ""}, files{"d/a": "2", "k": ""}, "d/a delete 1"},
		"both empty one":         {files{"d/a": "1", "d/b": "1"}, files{"d/a": "1"}, files{"d/b": "1"}, files{"d/": ""}, ""},
		"an empty one goes":      {files{"d/": "", "k": ""}, files{"k": "", "l": ""}, files{"d/": "", "k": "", "m": ""}, files{"k": "", "l": "", "m": ""}, ""},
		"omitted stays":          {files{"s": "?", "a": "1"}, files{"s": "?", "a": "2"}, files{"s": "?", "b": "1"}, files{"s": "?", "a": "2", "b": "1"}, "a delete 1"},
		"omitted by one":         {files{"s": "1"}, files{"s": "2"}, files{"s": "?"}, files{"s": "2"}, "s omitted 1"},
		"omitted, and unchanged": {files{"s": "1"}, files{"s": "1"}, files{"s": "?"}, files{"s": "?"}, ""},
		"no line feed":           {files{"a": "1\n2\n3"}, files{"a": "0\n2\n3"}, files{"a": "1\n2\n4"}, files{"a": "0\n2\n4"}, ""},
		"a line feed comes":      {files{"a": "1\n2\n3"}, files{"a": "1\n2\n3\n"}, files{"a": "0\n2\n3"}, files{"a": "0\n2\n3\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := shelf{}
			got, conflicts := s.merge(t, s.lay(t, c.base), s.lay(t, c.ours), s.lay(t, c.theirs))
			if d := cmp.Diff(c.want, s.shown(t, got)); d != "" {
				t.Error(d)
			}
			if got := strings.Join(conflicts, ", "); got != c.conflicts {
				t.Errorf("conflicts are %q, not %q", got, c.conflicts)
			}
			if want := s.lay(t, c.want); got != want {
				t.Error("it is another tree than one of the same files")
			}
		})
	}
}

// The thresholds of texts whose lines are merged, and what is told of those that are not.
func TestC04TextsAreMergedUpToTheirBounds(t *testing.T) {
	s := shelf{}
	of := func(n int, first, last string) files {
		return files{"a": first + "\n" + strings.Repeat("x", n-len(first)-len(last)-2) + "\n" + last}
	}
	lines := func(n int, first, last string) files {
		return files{"a": first + "\n" + strings.Repeat("\n", n-2) + last}
	}
	for _, c := range []struct {
		make func(n int, first, last string) files
		n    int
		want string
	}{{of, MergeMax, ""}, {of, MergeMax + 1, "a size 1"}, {lines, MergeLines, ""}, {lines, MergeLines + 1, "a size 1"}} {
		got, conflicts := s.merge(t, s.lay(t, c.make(c.n, "1", "1")), s.lay(t, c.make(c.n, "2", "1")), s.lay(t, c.make(c.n, "1", "2")))
		if strings.Join(conflicts, "") != c.want {
			t.Errorf("with %d: %v", c.n, conflicts)
		}
		if c.want == "" && got != s.lay(t, c.make(c.n, "2", "2")) {
			t.Errorf("with %d it is not merged", c.n)
		}
	}
	l := strings.Repeat("not\xff UTF-8\n", ConflictMax/4)
	_, conflicts, err := ThreeWay(s.read, s.put, s.lay(t, files{"a": "1\n"}), []protocol.Link{s.lay(t, files{"a": l + "2"}), s.lay(t, files{"a": l + "3"})})
	if err != nil || len(conflicts) != 1 || len(conflicts[0].Lines) > ConflictMax+64 || strings.Contains(conflicts[0].Lines, "\xff") {
		t.Errorf("%v, %d conflicts, %.200q", err, len(conflicts), conflicts[0].Lines)
	}
	_, conflicts, err = ThreeWay(s.read, s.put, s.lay(t, files{"a": "1\n"}), []protocol.Link{s.lay(t, files{"a": "2\n"}), s.lay(t, files{"a": "3"})})
	if want := "<<<<<<< stays\n2\n=======\n3\n>>>>>>> not taken over\n"; err != nil || conflicts[0].Lines != want {
		t.Errorf("%v, %+v", err, conflicts)
	}
}

// project is a tree of some files of many lines.
func project(r *rand.Rand) files {
	fs := files{}
	for range 8 {
		fs[pathOf(r)] = textOf(r)
	}
	return fs
}

func pathOf(r *rand.Rand) string {
	return []string{"", "d/", "d/e/", "f/"}[r.IntN(4)] + string(rune('a'+r.IntN(8))) + ".txt"
}

func textOf(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(30) {
		fmt.Fprintf(&b, "line %d\n", r.Uint32())
	}
	return b.String()
}

// edited changes some files: lines in them, whole ones, new ones, none.
func edited(r *rand.Rand, fs files) files {
	fs = maps.Clone(fs)
	for range 1 + r.IntN(4) {
		paths := slices.Sorted(maps.Keys(fs))
		if len(paths) == 0 || r.IntN(6) == 0 {
			fs[pathOf(r)] = textOf(r) + "end\n" // of two that are made and one is empty git takes the other
			continue
		}
		path := paths[r.IntN(len(paths))]
		if r.IntN(6) == 0 {
			delete(fs, path)
			continue
		}
		fs[path] = editedText(r, fs[path])
	}
	return fs
}

func editedText(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + r.IntN(3) {
		at := r.IntN(len(lines))
		switch n := min(1+r.IntN(3), len(lines)-at); r.IntN(3) {
		case 0:
			lines = slices.Delete(lines, at, at+n)
		case 1:
			lines = slices.Insert(lines, at, textOf(r))
		default:
			lines = slices.Replace(lines, at, at+n, textOf(r))
		}
		if lines = strings.SplitAfter(strings.Join(lines, ""), "\n"); len(lines) == 0 {
			lines = []string{""}
		}
	}
	return strings.Join(lines, "")
}

func TestC04LawsOfMerging(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	clean := 0
	for range 400 {
		s := shelf{}
		was := project(r)
		base, x, y, z := s.lay(t, was), s.lay(t, edited(r, was)), s.lay(t, edited(r, was)), s.lay(t, edited(r, was))
		for name, sides := range map[string][]protocol.Link{"x": {x}, "x, base": {x, base}, "base, x": {base, x}, "x, x": {x, x}} {
			if got, conflicts := s.merge(t, base, sides...); got != x || len(conflicts) > 0 {
				t.Fatalf("%s is not x: %v", name, conflicts)
			}
		}
		one, conflicts := s.merge(t, base, x, y, z)
		again, told := s.merge(t, base, x, y, z)
		if one != again || !slices.Equal(conflicts, told) {
			t.Fatal("merged again it is another tree")
		}
		if len(conflicts) > 0 {
			continue
		}
		clean++
		for _, order := range [][]protocol.Link{{y, x, z}, {z, y, x}, {y, z, x}} {
			if other, conflicts := s.merge(t, base, order...); other != one || len(conflicts) > 0 {
				t.Fatalf("edits that meet nowhere do not commute: %v\n%v", conflicts, cmp.Diff(s.shown(t, one), s.shown(t, other)))
			}
		}
	}
	if clean < 50 || clean > 350 {
		t.Errorf("%d of 400 rounds are without conflict", clean)
	}
}

// git merges lines by the same rules, where it is clear which lines are the same.
func TestC04GitMergesTheSameLines(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	clean := 0
	const rounds = 120
	for i := range rounds {
		base := textOf(r)
		texts := []string{editedText(r, base), base, editedText(r, base)}
		for i, text := range texts {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run := func(args ...string) (string, bool) {
			cmd := exec.Command(git, append([]string{"merge-file", "-p", "-q"}, append(args, "0", "1", "2")...)...)
			cmd.Dir = dir
			out, err := cmd.Output()
			if _, status := errors.AsType[*exec.ExitError](err); err != nil && !status {
				t.Fatal(err)
			}
			return string(out), err == nil
		}
		want, ok := run()
		got, lost := mergeLines([]byte(base), []byte(texts[0]), []byte(texts[2]))
		if ok != (lost == "") {
			t.Fatalf("round %d: git finds a conflict: %t, and this: %q\n%q", i, !ok, lost, texts)
		}
		if ok {
			clean++
		} else {
			want, _ = run("--ours")
		}
		if string(got) != want {
			t.Fatalf("round %d: %s\n%q", i, cmp.Diff(want, string(got)), texts)
		}
	}
	if clean < rounds/10 || clean > rounds*9/10 {
		t.Errorf("%d of %d rounds are without conflict", clean, rounds)
	}
}

// git merges trees by the same rules where it finds no conflict, and finds one where this does.
func TestC04GitMergesTheSameTrees(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	run := func(stdin string, args ...string) (string, bool) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
		out, err := cmd.Output()
		if x, status := errors.AsType[*exec.ExitError](err); err != nil && (!status || x.ExitCode() != 1) {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out), err == nil
	}
	run("", "init", "-q")
	r := rand.New(rand.NewPCG(7, 8))
	const rounds = 60
	var rows [rounds][3]files
	var stream strings.Builder
	for i := range rows {
		base := project(r)
		rows[i] = [3]files{base, edited(r, base), edited(r, base)}
		for j, fs := range rows[i] {
			fmt.Fprintf(&stream, "commit refs/heads/r%d-%d\ncommitter a <a> 0 +0000\ndata 0\n", i, j)
			if j > 0 {
				fmt.Fprintf(&stream, "from refs/heads/r%d-0\ndeleteall\n", i)
			}
			for path, text := range fs {
				fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
			}
		}
	}
	run(stream.String(), "fast-import", "--quiet")
	clean := 0
	for i, row := range rows {
		s := shelf{}
		got, conflicts := s.merge(t, s.lay(t, row[0]), s.lay(t, row[1]), s.lay(t, row[2]))
		out, ok := run("", "-c", "merge.renames=false", "merge-tree", "--write-tree", fmt.Sprintf("r%d-1", i), fmt.Sprintf("r%d-2", i))
		if ok != (len(conflicts) == 0) {
			t.Fatalf("round %d: conflicts are %v, and git says\n%s", i, conflicts, out)
		}
		if !ok {
			continue
		}
		clean++
		want, _ := run("", "ls-tree", "-r", "-z", strings.TrimSpace(out))
		var has []string
		for path, text := range s.shown(t, got) {
			if !strings.HasSuffix(path, "/") { // git has no empty directories
				has = append(has, fmt.Sprintf("100644 blob %x\t%s\x00", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)), path))
			}
		}
		slices.SortFunc(has, func(a, b string) int { return strings.Compare(a[53:], b[53:]) })
		if d := cmp.Diff(strings.Split(want, "\x00"), strings.Split(strings.Join(has, ""), "\x00")); d != "" {
			t.Errorf("round %d: %s", i, d)
		}
	}
	if clean < rounds/10 || clean > rounds*9/10 {
		t.Errorf("%d of %d rounds are without conflict", clean, rounds)
	}
}

// diffLines tells a text apart from another by hunks that make it up again, whatever repeats in them.
func TestC04HunksMakeUpTheOtherText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		text := func() []int32 {
			out := make([]int32, r.IntN(40))
			for i := range out {
				out[i] = int32(r.IntN(6))
			}
			return out
		}
		a, b := text(), text()
		var got []int32
		at := 0
		for i, h := range diffLines(a, b) {
			if i > 0 && h.from <= at || h.from > h.to || h.as > h.end {
				t.Fatalf("hunk %d, %v, does not follow: %v %v", i, h, a, b)
			}
			got = append(append(got, a[at:h.from]...), b[h.as:h.end]...)
			at = h.to
		}
		if got = append(got, a[at:]...); !slices.Equal(got, b) {
			t.Fatalf("%v becomes %v, not %v", a, got, b)
		}
	}
}

// What may have been made by anyone takes bounded work: long texts of which each line repeats and nothing is the same.
func TestC04MergingIsBounded(t *testing.T) {
	a, b := make([]int32, 40_000), make([]int32, 40_000)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range a {
		a[i], b[i] = int32(r.IntN(50)), int32(50+r.IntN(50))
	}
	if got := diffLines(a, b); len(got) != 1 || got[0] != (hunk{0, len(a), 0, len(b)}) {
		t.Errorf("%d hunks", len(got))
	}
	s := shelf{}
	deep := func(text string) protocol.Link {
		l := s.dir(t, s.file(t, "f", []byte(text)))
		for range DepthMax {
			l = s.dir(t, Entry{Name: "d", Mode: Dir, Link: l, Size: 1})
		}
		return l
	}
	if _, _, err := ThreeWay(s.read, s.put, deep("1"), []protocol.Link{deep("2"), deep("3")}); !errors.Is(err, protocol.ErrInvalidBlock) {
		t.Error(err)
	}
	if _, _, err := ThreeWay(s.read, s.put, deep("1"), []protocol.Link{protocol.RawLink([]byte("no tree")), deep("3")}); !errors.Is(err, protocol.ErrInvalidBlock) {
		t.Error(err)
	}
}

func BenchmarkC04Merge(b *testing.B) {
	s := shelf{}
	fs := files{}
	for i := range 50_000 {
		fs[fmt.Sprintf("d%d/f%d", i/100, i)] = fmt.Sprintf("file\n%d\n", i)
	}
	base := s.lay(b, fs)
	var sides []protocol.Link
	for i := range 3 {
		changed := maps.Clone(fs)
		for j := range 1000 {
			changed[fmt.Sprintf("d%d/f%d", (3*j+i)/2, 50*(3*j+i))] = "changed"
		}
		sides = append(sides, s.lay(b, changed))
	}
	b.ResetTimer()
	for b.Loop() {
		s.merge(b, base, sides...)
	}
}
