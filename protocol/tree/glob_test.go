package tree

import (
	"strings"
	"testing"
)

// chosen asks globs for a path, directory by directory.
func chosen(t *testing.T, globs []string, path string) bool {
	t.Helper()
	g, err := NewGlobs(globs)
	if err != nil {
		t.Fatal(err)
	}
	at := g.Top()
	names := strings.Split(path, "/")
	for _, dir := range names[:len(names)-1] {
		var ok bool
		if at, ok = at.enter(dir); !ok {
			return false
		}
	}
	return at.Takes(names[len(names)-1])
}

func TestGlobsChooseByPath(t *testing.T) {
	for _, c := range []struct{ globs, yes, no string }{
		{"report.html", "report.html", "a/report.html report.htm report.html2"},
		{"dist", "dist dist/a dist/b/c", "dist2/a a/dist"},
		{"dist/", "dist/a dist/b/c", "a"},
		{"./dist/./x", "dist/x", "dist/y"},
		{"dist/**", "dist/a dist/b/c dist/.hidden", "dist a/dist/b"},
		{"dist/*", "dist/a dist/b/c", "dist"}, // a directory that fits is taken with all below it
		{"dist/*.js", "dist/a.js", "dist/b/c.js dist/a.ts"},
		{"**/*.xml", "a.xml b/a.xml b/c/d/a.xml", "a.xml2 b/a.txt"},
		{"a/**/b/**/c", "a/b/c a/x/b/y/z/c a/x/y/b/c", "a/c b/c a/b a/b/d"},
		{"**", "a a/b/c .env", ""},
		{"**/**/x", "x a/x a/b/x", "y"},
		{"a/?.[a-c]", "a/x.b", "a/xy.b a/x.d"},
		{"dist/** !dist/**/*.map", "dist/a.js dist/b/c.js", "dist/a.map dist/b/c.map"},
		{"dist/** !dist/private dist/private/but/this", "dist/a dist/private/but/this", "dist/private/x dist/private/but/that"},
		{"** !**", "", "a a/b"},
		{`a\*b`, "a*b", "axb"},
	} {
		for _, path := range strings.Fields(c.yes) {
			if !chosen(t, strings.Fields(c.globs), path) {
				t.Errorf("%s does not choose %s", c.globs, path)
			}
		}
		for _, path := range strings.Fields(c.no) {
			if chosen(t, strings.Fields(c.globs), path) {
				t.Errorf("%s chooses %s", c.globs, path)
			}
		}
	}
}

func TestGlobsStayInTheWorkspace(t *testing.T) {
	for glob, why := range map[string]string{"/etc/passwd": "relative", "~/x": "relative", "../x": "..", "a/../b": "..", "!/x": "relative", "": "empty", "!": "empty", "a[": "syntax", "!a": "nothing was chosen"} {
		if _, err := NewGlobs([]string{glob}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", glob, err)
		}
	}
}

// What a directory is entered for does not depend on how deep it lies: a glob cannot make a walk slow.
func TestALongGlobStaysCheap(t *testing.T) {
	g, err := NewGlobs([]string{strings.Repeat("**/a*/", 200) + "x"})
	if err != nil {
		t.Fatal(err)
	}
	at := g.Top()
	for range 1000 {
		at, _ = at.enter("aaaa")
	}
	if n := len(at.at[0].parts); n > 401 {
		t.Errorf("%d parts are looked at", n)
	}
	if !at.Takes("x") {
		t.Error("it does not fit")
	}
}
