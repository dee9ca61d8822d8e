package workspace_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/roles/workspace"
)

// git runs the real git, with no settings but those of the repository.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("git %s: %s", strings.Join(args, " "), exit.Stderr)
	}
	if err != nil {
		t.Skipf("no git: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// repository is a new one with two commits on main.
func repository(t *testing.T, init ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	git(t, filepath.Dir(dir), append([]string{"init", "-q", "-b", "main", dir}, init...)...)
	for _, n := range []string{"one", "two"} {
		git(t, dir, "commit", "-q", "--allow-empty", "-m", n)
	}
	return dir
}

func head(t *testing.T, dir string) *workspace.Head {
	t.Helper()
	root, err := workspace.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return workspace.ReadHead(t.Context(), root)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestTheHeadIsThatOfGit(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) string{
		"a branch":              func(t *testing.T) string { return repository(t) },
		"of SHA-256":            func(t *testing.T) string { return repository(t, "--object-format=sha256") },
		"without commits":       func(t *testing.T) string { d := t.TempDir(); git(t, d, "init", "-q", "-b", "main"); return d },
		"a directory in it":     func(t *testing.T) string { d := repository(t); write(t, d+"/a/b/c", ""); return d + "/a/b" },
		"a separate repository": func(t *testing.T) string { return repository(t, "--separate-git-dir", t.TempDir()+"/git") },
		"detached": func(t *testing.T) string {
			d := repository(t)
			git(t, d, "checkout", "-q", "--detach", "HEAD~1")
			return d
		},
		"packed refs": func(t *testing.T) string {
			d := repository(t)
			git(t, d, "checkout", "-q", "-b", "fix/some/thing")
			git(t, d, "tag", "-a", "-m", "peeled", "fix")
			git(t, d, "branch", "fix/other", "HEAD~1")
			git(t, d, "pack-refs", "--all")
			return d
		},
		"moved since they were packed": func(t *testing.T) string {
			d := repository(t)
			git(t, d, "pack-refs", "--all")
			git(t, d, "commit", "-q", "--allow-empty", "-m", "three")
			return d
		},
		"a worktree": func(t *testing.T) string {
			d := repository(t)
			git(t, d, "worktree", "add", "-q", "-b", "beside", d+"-beside", "HEAD~1")
			git(t, d, "pack-refs", "--all")
			return d + "-beside"
		},
		"a submodule": func(t *testing.T) string {
			d, sub := repository(t), repository(t)
			git(t, d, "submodule", "--quiet", "add", sub, "sub")
			return d + "/sub"
		},
		"a .git that is no repository": func(t *testing.T) string {
			d := repository(t)
			write(t, d+"/a/.git/x", "")
			return d + "/a"
		},
		"a name of two bytes": func(t *testing.T) string {
			d := repository(t)
			git(t, d, "checkout", "-q", "-b", "größer")
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := make(t)
			want := &workspace.Head{Branch: git(t, dir, "branch", "--show-current")}
			if git(t, dir, "rev-list", "--all", "-1") != "" {
				want.Commit = git(t, dir, "rev-parse", "HEAD")
			}
			if d := cmp.Diff(want, head(t, dir)); d != "" {
				t.Errorf("not what git says:\n%s", d)
			}
		})
	}
}

// What an agent can make of a repository ends in "unknown": nothing hangs, no link is followed.
func TestAHeadOfAnotherShapeIsUnknown(t *testing.T) {
	id := strings.Repeat("a1", 20)
	for name, spoil := range map[string]func(dir string) error{
		"no .git": func(dir string) error { return os.RemoveAll(dir + "/.git") },
		".git is a link": func(dir string) error {
			return errors.Join(os.Rename(dir+"/.git", dir+"/g"), os.Symlink("g", dir+"/.git"))
		},
		".git is a pipe": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/.git"), syscall.Mkfifo(dir+"/.git", 0o666))
		},
		"HEAD is a link": func(dir string) error {
			return errors.Join(os.Rename(dir+"/.git/HEAD", dir+"/h"), os.Symlink("../h", dir+"/.git/HEAD"))
		},
		"HEAD is a pipe": func(dir string) error {
			return errors.Join(os.Remove(dir+"/.git/HEAD"), syscall.Mkfifo(dir+"/.git/HEAD", 0o666))
		},
		"HEAD is large": func(dir string) error {
			return os.WriteFile(dir+"/.git/HEAD", []byte(id+strings.Repeat("\n", 5_000)), 0o666)
		},
		"HEAD is a text": func(dir string) error { return os.WriteFile(dir+"/.git/HEAD", []byte("password"), 0o666) },
		"HEAD leads elsewhere": func(dir string) error {
			return os.WriteFile(dir+"/.git/HEAD", []byte("ref: refs/heads/../../secret\n"), 0o666)
		},
		"the branch is a link": func(dir string) error {
			ref := dir + "/.git/refs/heads/main"
			return errors.Join(os.Remove(ref), os.WriteFile(dir+"/x", []byte(id), 0o666), os.Symlink("../../../x", ref))
		},
		"refs are a link": func(dir string) error {
			return errors.Join(os.Rename(dir+"/.git/refs", dir+"/r"), os.Symlink("../r", dir+"/.git/refs"))
		},
		"packed-refs is one line": func(dir string) error {
			return errors.Join(os.Remove(dir+"/.git/refs/heads/main"), os.WriteFile(dir+"/.git/packed-refs", nil, 0o666), os.Truncate(dir+"/.git/packed-refs", 1<<40))
		},
		"a reftable": func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/.git/reftable", 0o777), os.WriteFile(dir+"/.git/HEAD", []byte("ref: refs/heads/.invalid"), 0o666))
		},
		"a .git file that leads nowhere": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/.git"), os.WriteFile(dir+"/.git", []byte("gitdir: /nowhere"), 0o666))
		},
		"a commondir that is a pipe": func(dir string) error { return syscall.Mkfifo(dir+"/.git/commondir", 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/.git/HEAD", "ref: refs/heads/main\n")
			write(t, dir+"/.git/refs/heads/main", id+"\n")
			write(t, dir+"/.git/objects/x", "")
			if d := cmp.Diff(&workspace.Head{Commit: id, Branch: "main"}, head(t, dir)); d != "" {
				t.Fatal(d)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if h := head(t, dir); h != nil {
				t.Errorf("read %+v", h)
			}
		})
	}
}

func TestAReadOfManyRefsEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/.git/HEAD", "ref: refs/heads/last\n")
	write(t, dir+"/.git/objects/x", "")
	write(t, dir+"/.git/refs/x", "")
	line := strings.Repeat("a1", 20) + " refs/heads/"
	write(t, dir+"/.git/packed-refs", strings.Repeat(line+"some\n", 100_000)+line+"last\n")
	if h := head(t, dir); h == nil || h.Commit == "" {
		t.Errorf("the last of many refs: %v", h)
	}
	root, err := workspace.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if h := workspace.ReadHead(ctx, root); h != nil {
		t.Errorf("a read that was given up: %v", h)
	}
}
