package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
)

// What git and wf act on outside of the sandbox is written by no file tool, whatever the way to
// it: its name on any file system, links, the directory of the role.
func TestNoFileToolWritesWhatOthersActOn(t *testing.T) {
	for _, path := range []string{
		".git/config", ".git/hooks/pre-commit", ".git/new/file", ".git", "sub/.git/config", "sub/.git", "new/.git/config",
		".wf/store.db", ".wf/config.yaml", ".wf", "sub/.wf/config.yaml",
		".GIT/config", ".Git", "git~1/config", ".git /config", ".git./config", ".git. . ", ".git::$INDEX_ALLOCATION/config", ".g\u200cit/config", ".git\ufeff", `sub\.git\config`, ".WF/x", "wf~1/x",
		"link/config", "link/new/hook", "deep/again/config", "file", "nowhere", "tolink/config", "./sub/../.git/config", "real/config",
	} {
		for _, change := range []string{"write_file", "edit_file"} {
			dir := t.TempDir()
			for _, name := range []string{".git/config", ".git/hooks/pre-commit", ".wf/store.db", ".wf/config.yaml", "sub/.git/config", "sub/.wf/config.yaml", "git~1/config", ".GIT/config", ".git /config"} {
				write(t, dir, name, "old")
			}
			// The repository itself may have another name.
			write(t, dir, "real/config", "old")
			write(t, dir, "real/HEAD", "ref: refs/heads/main\n")
			write(t, dir, "real/objects/x", "")
			write(t, dir, "real/refs/x", "")
			for link, to := range map[string]string{"link": ".git", "deep": "sub/..", "again": "sub/.git", "file": ".git/config", "nowhere": ".git/hooks/post-checkout", "tolink": "link"} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(path, "real") {
				if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
					t.Fatal(err)
				}
				write(t, dir, ".git", "gitdir: real\n")
			}
			before := tree(t, dir)
			a := args{"path": path, "content": "new"}
			if change == "edit_file" {
				a = args{"path": path, "old": "old", "new": "new"}
			}
			r := call(t, tool.Workspace{Dir: dir}, change, a)
			if !r.IsError || !strings.Contains(r.Content, "refused: ") || !strings.Contains(r.Content, "a person can change") {
				t.Errorf("%s %q gives %q", change, path, r.Content)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("%s %q: the workspace was\n%s\nand is\n%s", change, path, before, after)
			}
		}
	}
}

// tree is the names and contents of all that lies in a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path)
		if e.Type().IsRegular() {
			b.WriteString(": " + read(t, "", path))
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A role whose directory is a link into .git, which an agent has made, writes nothing there.
func TestTheDirectoryOfARoleIsNoWayIntoGit(t *testing.T) {
	root := t.TempDir()
	write(t, root, ".git/config", "old")
	if err := os.Symlink(".git", filepath.Join(root, "sub")); err != nil {
		t.Fatal(err)
	}
	at := tool.Workspace{Root: root, Dir: filepath.Join(root, "sub")}
	if r := call(t, at, "write_file", args{"path": "config", "content": "new"}); !r.IsError || read(t, root, ".git/config") != "old" {
		t.Errorf("it gives %q", r.Content)
	}
	outside := t.TempDir()
	write(t, outside, "secret", "top secret")
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	at.Dir = filepath.Join(root, "out")
	for name, a := range map[string]args{"read_file": {"path": "secret"}, "list_files": {"path": "."}, "search": {"pattern": "."}, "write_file": {"path": "new", "content": "x"}} {
		if r := call(t, at, name, a); !r.IsError || !strings.Contains(r.Content, "outside of the workspace") {
			t.Errorf("%s gives %q", name, r.Content)
		}
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
		t.Error("a file was written outside of the workspace")
	}
	for _, how := range []string{"", sandbox.Off} {
		at.Sandbox = how
		if r := call(t, at, "shell", args{"command": "cat secret"}); !r.IsError || strings.Contains(r.Content, "top secret") {
			t.Errorf("shell, sandbox %q, gives %q", how, r.Content)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "in"), 0o777); err != nil {
		t.Fatal(err)
	}
	at.Dir = filepath.Join(root, "in")
	if r := call(t, at, "shell", args{"command": "pwd"}); r.Content != "exit code: 0\nstdout:\n"+at.Dir {
		t.Errorf("shell gives %q", r.Content)
	}
}

// The temporary name beside a file, too, can be a link that an agent has made.
func TestNoLinkInPlaceOfTheTemporaryFileIsWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ".git/config", "old")
	if err := os.Symlink(".git/config", filepath.Join(dir, ".a.wf-tmp")); err != nil {
		t.Fatal(err)
	}
	if r := call(t, tool.Workspace{Dir: dir}, "write_file", args{"path": "a", "content": "new"}); r.IsError || read(t, dir, "a") != "new" {
		t.Errorf("it gives %q", r.Content)
	}
	if got := read(t, dir, ".git/config"); got != "old" {
		t.Errorf(".git/config is %q", got)
	}
}

func TestNoFileToolReadsTheStore(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ".wf/serve/token", "the token")
	write(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
	if err := os.Symlink(".wf/serve", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at := tool.Workspace{Dir: dir}
	for _, c := range []struct {
		tool string
		args args
	}{
		{"read_file", args{"path": ".wf/serve/token"}}, {"read_file", args{"path": "link/token"}}, {"list_files", args{"path": ".wf"}}, {"list_files", args{"path": "link"}},
		{"search", args{"pattern": "t", "path": ".wf"}}, {"search", args{"pattern": "t", "path": "link"}}, {"search", args{"pattern": "t", "path": "link/token"}},
	} {
		if r := call(t, at, c.tool, c.args); !r.IsError || !strings.Contains(r.Content, "refused: .wf belongs to wf") {
			t.Errorf("%s %v gives %q", c.tool, c.args, r.Content)
		}
	}
	if r := call(t, at, "read_file", args{"path": ".git/HEAD"}); r.Content != "ref: refs/heads/main\n" {
		t.Errorf("what git says is read as %q", r.Content)
	}
}

// Files beside those are what they were.
func TestNamesLikeThoseOfGitAreWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "real/x", "")
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".gitignore", ".github/workflows/ci.yml", ".gitattributes", ".wfx", "git", "a.git/config", "..git", "wf", ".git-hooks/x", "git~10", "link/new/file"} {
		if r := call(t, tool.Workspace{Dir: dir}, "write_file", args{"path": path, "content": path}); r.IsError {
			t.Errorf("%s: %s", path, r.Content)
		} else if got := read(t, dir, path); got != path {
			t.Errorf("%s holds %q", path, got)
		}
	}
	if got := read(t, dir, "real/new/file"); got != "link/new/file" {
		t.Errorf("through the link there is %q", got)
	}
}
