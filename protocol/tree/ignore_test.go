package tree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notIgnored are the files of a directory, given as paths and texts, that rules choose.
func notIgnored(t *testing.T, files map[string]string, include, exclude []string) (out []string) {
	t.Helper()
	in, err := NewGlobs(include)
	if err != nil {
		t.Fatal(err)
	}
	ex, err := NewGlobs(exclude)
	if err != nil {
		t.Fatal(err)
	}
	top, err := NewIgnored(func(path string) ([]byte, error) { return []byte(files[path]), nil }, in, ex)
	if err != nil {
		t.Fatal(err)
	}
	for path := range files {
		var at Chooser = top
		names := strings.Split(path, "/")
		for _, dir := range names[:len(names)-1] {
			if at, err = at.Enter(dir); err != nil {
				t.Fatal(err)
			}
			if at == nil {
				break
			}
		}
		if at != nil && at.Takes(names[len(names)-1]) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// git says which files it would take up of a directory.
func git(t *testing.T, dir string) (out []string) {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false", "-c", "core.precomposeUnicode=false",
		"ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v %s", err, &stderr)
	}
	for path := range strings.SplitSeq(string(list), "\x00") {
		if path != "" {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// C-1: git is the oracle of the rules, on random directories, names and patterns.
func TestC01GitIgnoresTheSame(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		dir := t.TempDir()
		if out, err := exec.Command("git", "init", "-q", "--template=", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		files := map[string]string{}
		for range 120 {
			path := ""
			for range r.IntN(4) {
				path += ignoredName(r) + "/"
			}
			files[path+ignoredName(r)] = ""
		}
		for range 4 {
			path := ""
			for range r.IntN(3) {
				path += ignoredName(r) + "/"
			}
			var text strings.Builder
			for range 1 + r.IntN(6) {
				text.WriteString(ignorePattern(r) + []string{"\n", "\n", "\r\n", "\n\n", " \n"}[r.IntN(5)])
			}
			files[path+".gitignore"] = text.String()
		}
		for path, text := range files {
			at := filepath.Join(dir, filepath.FromSlash(path))
			err := os.MkdirAll(filepath.Dir(at), 0o777)
			if err == nil {
				err = os.WriteFile(at, []byte(text), 0o666)
			}
			if err != nil { // a file lies where a directory should
				delete(files, path)
			}
		}
		want, got := git(t, dir), notIgnored(t, files, nil, nil)
		if slices.Equal(want, got) {
			continue
		}
		for path, text := range files {
			if text != "" {
				t.Logf("%s: %q", path, text)
			}
		}
		for _, p := range got {
			if !slices.Contains(want, p) {
				t.Errorf("git ignores %q", p)
			}
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Errorf("git takes %q", p)
			}
		}
		t.Fatalf("seed %d, round %d", seed, round)
	}
}

func ignoredName(r *rand.Rand) string {
	return pick(r, "a", "b", "ab", "a.o", "b.o", "A", "ä", "a b", "x ", "#x", "!x", "[a]", "a*", `a\`, "-", "a-b", "build", "foo", "日本", "tmp.txt", ".x", "a]", "1", "a\tb")
}

func ignorePattern(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteString("!")
	}
	if r.IntN(5) == 0 {
		b.WriteString("/")
	}
	for range 1 + r.IntN(3) {
		b.WriteString(pick(r, ignoredName(r), ignoredName(r), "*", "**", "**/", "/**/", "/", "?", "*.o", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[[:alpha:]]", "[[:digit:]b]",
			"[a", "[[:x:]]", `\a`, `\ `, `\#x`, `\!x`, `\[a]`, "[a-]", "[a/b]", `[\]]`, "a/**", "a/", `\/`, "***", "[[:]", "#", " ", "[--a]", `[\a-\c]`, "[z-a]", `\`))
	}
	if r.IntN(4) == 0 {
		b.WriteString("/")
	}
	return b.String()
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func TestC01WhatRulesLeaveOut(t *testing.T) {
	files := map[string]string{".gitignore": "*.o\nbuild/\nnode_modules\n", ".wfignore": "!keep.o\nlogs\n", "keep.o": "", "x.o": "", "build/a": "", "src/a.go": "",
		"node_modules/x/y": "", "node_modules/z": "", "logs/1": "", "src/.gitignore": "!x.o\n", "src/x.o": "", "src/node_modules/w": ""}
	for _, c := range []struct{ include, exclude, want string }{
		{"", "", ".gitignore .wfignore keep.o src/.gitignore src/a.go src/x.o"},
		{"node_modules/x build", "", ".gitignore .wfignore build/a keep.o node_modules/x/y src/.gitignore src/a.go src/x.o"},
		{"**/node_modules", "node_modules src/*.go", ".gitignore .wfignore keep.o src/.gitignore src/node_modules/w src/x.o"},
		{"", "src", ".gitignore .wfignore keep.o"},
	} {
		if got := strings.Join(notIgnored(t, files, strings.Fields(c.include), strings.Fields(c.exclude)), " "); got != c.want {
			t.Errorf("include %q, exclude %q:\n%s\n%s", c.include, c.exclude, got, c.want)
		}
	}
}

// A pattern of an agent's file costs no more than its length times that of the path.
func TestC01APatternIsMatchedInTime(t *testing.T) {
	path := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 200)+"/", 100), "/")
	for _, pattern := range []string{strings.Repeat("a*", 500) + "b", strings.Repeat("a*a*/**/", 100) + "b", strings.Repeat("[", 5000)} {
		if got := notIgnored(t, map[string]string{".gitignore": pattern, path: ""}, nil, nil); len(got) != 2 {
			t.Errorf("%.20q leaves out %d of 2", pattern, 2-len(got))
		}
	}
	rule := fmt.Sprintf("%s\n", strings.Repeat("x", IgnoreMax))
	if got := notIgnored(t, map[string]string{".gitignore": "a\n" + rule, "a": ""}, nil, nil); len(got) != 2 {
		t.Error("a file of rules that is too long has some")
	}
	if got := notIgnored(t, map[string]string{".gitignore": "a\n" + rule[:IgnoreMax-2], "a": ""}, nil, nil); len(got) != 1 {
		t.Error("a file of rules of the greatest length has none")
	}
}
