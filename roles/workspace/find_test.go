package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wf/roles/workspace"
)

// The names that stand for .git are those that git refuses to have in a repository.
func TestReservedNamesAreThoseOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	for name, stands := range map[string]bool{
		".git": true, ".GIT": true, ".Git": true, "git~1": true, "GIT~1": true, ".git ": true, ".git.": true, ".git. .": true, ".git:": true, ".git::$INDEX_ALLOCATION": true,
		".git:x": true, ".g\u200cit": true, "\ufeff.git": true, ".git\u206a": true, ".\u202egit": true, ".gi\u200dT": true,
		".gitx": false, "git": false, "git~2": false, "git~10": false, "x.git": false, ".gi": false, ".git~1": false, "..git": false, ".g\u00a0it": false, ".gıt": false, " .git": false,
	} {
		if got := workspace.Reserved(name) == ".git"; got != stands {
			t.Errorf("%q stands for .git: %v", name, got)
		}
		cmd := exec.Command("git", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "--add", "--cacheinfo", "100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,"+name+"/x")
		cmd.Dir = dir
		if refused := cmd.Run() != nil; refused != stands {
			t.Errorf("git refuses %q: %v", name, refused)
		}
	}
	for _, name := range []string{".wf", ".WF", ".wf. ", "wf~1", ".w\u200cf", ".wf:x"} {
		if workspace.Reserved(name) != ".wf" {
			t.Errorf("%q does not stand for .wf", name)
		}
	}
}

func TestPathsThatLeadOut(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside+"/file", "x")
	write(t, dir+"/sub/deep/file", "x")
	write(t, dir+"/beside/file", "x")
	for link, to := range map[string]string{"out": outside, "sub/up": "../..", "sub/beside": "../beside", "sub/deep/up": "..", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir, name string
		outside   bool
		path      string
	}{
		{"", "out/file", true, ""}, {"", "sub/up/x", true, ""}, {"", "sub/beside/file", false, "beside/file"}, {"", "sub/deep/up/deep/file", false, "sub/deep/file"},
		{"sub", "beside/file", true, ""}, {"sub", "deep/up/deep/file", false, "deep/file"}, {"out", "file", true, ""}, {"sub/beside", "file", false, "file"}, {"", "loop", false, ""},
	} {
		p, err := workspace.Find(dir, c.dir, c.name, workspace.Read)
		switch {
		case workspace.Outside(err) != c.outside:
			t.Errorf("%s in %q: %v", c.name, c.dir, err)
		case c.path == "":
			if err == nil {
				t.Errorf("%s in %q is found", c.name, c.dir)
			}
		case err != nil || p.Path != c.path:
			t.Errorf("%s in %q: %+v, %v", c.name, c.dir, p, err)
		}
		if p != nil {
			p.Close()
		}
		r, err := workspace.Open(dir, filepath.Join(c.dir, filepath.Dir(c.name)))
		if err == nil {
			r.Close()
		}
		if c.name != "loop" && (err == nil) != (!c.outside || c.dir == "sub") {
			t.Errorf("the directory of %s in %q: %v", c.name, c.dir, err)
		}
	}
	var refused *workspace.ReservedError
	if _, err := workspace.Find(dir, ".wf", "x", workspace.Read); !errors.As(err, &refused) || refused.Name != ".wf" {
		t.Errorf("%v", err)
	}
}
