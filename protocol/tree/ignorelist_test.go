package tree

import (
	"strings"
	"testing"
)

func TestAListOfRules(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		ignored     []string // a trailing / is a directory
		kept        []string
	}{
		{"a name, at any depth", "build", []string{"build", "build/", "a/b/build"}, []string{"builder", "a/build.go"}},
		{"a directory alone", "build/", []string{"build/", "a/build/"}, []string{"build"}},
		{"anchored by a slash in front", "/build", []string{"build"}, []string{"a/build"}},
		{"anchored by a slash within", "a/build", []string{"a/build"}, []string{"x/a/build"}},
		{"a star stays in its directory", "a/*.go", []string{"a/x.go"}, []string{"a/b/x.go", "a/xgo"}},
		{"an extension", "*.log", []string{"x.log", "a/.log"}, []string{"x.logs"}},
		{"two stars in front", "**/gen", []string{"gen", "a/b/gen"}, []string{"agen"}},
		{"two stars at the end", "gen/**", []string{"gen/a", "gen/a/b"}, []string{"gen/", "gen"}},
		{"two stars within", "a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/xb"}},
		{"two stars that are none", "?a**b/c", []string{"xayb/c"}, []string{"xay/b/c"}},
		{"two stars behind a plain name", "a**/c", []string{"a/c", "ax/y/c"}, []string{"b/c"}},
		{"the last line wins", "*.go\n!main.go\n", []string{"x.go"}, []string{"main.go", "a/main.go"}},
		{"a class", "[a-c]?[!0-9].[[:alpha:]]", []string{"axy.z"}, []string{"dxy.z", "ax1.z", "axy.1"}},
		{"a class never has a slash", "a[+-9]b/c[!x]d", []string{"a0b/cyd"}, []string{"a/b/cyd", "a0b/c/d"}},
		{"a bracket first in a class", "[]x]", []string{"]", "x"}, []string{"[", "y"}},
		{"a class that does not end matches nothing", "a[b\n[[:what:]]", nil, []string{"ab", "a[b", "a"}},
		{"comments and blank lines", "# no\n\n   \n\\#yes", []string{"#yes"}, []string{"# no", " "}},
		{"an escaped mark", "\\!x\n\\*y", []string{"!x", "*y"}, []string{"x", "ay"}},
		{"spaces at the end, unless protected", "a   \nb\\ ", []string{"a", "b "}, []string{"a ", "b"}},
		{"a lone backslash matches nothing", "a\\", nil, []string{"a", "a\\"}},
		{"CRLF and a byte order mark", "\xef\xbb\xbfa\r\nb\r\n", []string{"a", "b"}, nil},
		{"letters beyond ASCII are bytes, as for git", "ä??ü\né*", []string{"äöü", "éa"}, []string{"äü", "äoü", "e"}},
		{"a slash alone", "/\n//", nil, []string{"a", "a/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l *IgnoreList
			l = l.With("", []byte(c.lines))
			for _, name := range c.ignored {
				if bare, isDir := strings.CutSuffix(name, "/"); !l.Ignores(bare, isDir) {
					t.Errorf("%s is kept", name)
				}
			}
			for _, name := range c.kept {
				if bare, isDir := strings.CutSuffix(name, "/"); l.Ignores(bare, isDir) {
					t.Errorf("%s is ignored", name)
				}
			}
		})
	}
}

func TestTheDeepestFileDecides(t *testing.T) {
	var l *IgnoreList
	l = l.With("", []byte("*.txt\n/x\n"))
	in := l.With("sub", []byte("!keep.txt\n/x\nsub\n"))
	for name, want := range map[string]bool{
		"a.txt": true, "sub/a.txt": true, "sub/keep.txt": false, "keep.txt": true,
		"x": true, "sub/x": true, "sub/y/x": false, "sub": false, "sub/sub": true, "subx/sub": false,
	} {
		if got := in.Ignores(name, false); got != want {
			t.Errorf("%s: ignored %v", name, got)
		}
	}
	if l.With("z", []byte("# nothing\n")) != l {
		t.Error("an empty file makes a new list")
	}
}
