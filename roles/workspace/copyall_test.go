package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"wf/protocol/tree"
	"wf/roles/workspace"
)

func makeFile(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestACopyHasTheFilesAndNothingElse(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	makeFile(t, from, "a.txt", "a", 0o644)
	makeFile(t, from, "bin/run.sh", "#!/bin/sh", 0o755)
	makeFile(t, from, ".git/config", "secret", 0o644)
	makeFile(t, from, "sub/.GIT/config", "secret", 0o644)
	makeFile(t, from, ".wf/store.db", "runs", 0o644)
	outside := t.TempDir()
	makeFile(t, outside, "far.txt", "far", 0o644)
	for name, target := range map[string]string{"near": "a.txt", "inside": filepath.Join(from, "bin"), "outside": filepath.Join(outside, "far.txt"), "sub/inside": filepath.Join(from, "bin"), "loop": "."} {
		if err := os.Symlink(target, filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(from, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(filepath.Join(from, "a.txt"), when, when); err != nil {
		t.Fatal(err)
	}
	all, err := tree.NewGlobs([]string{"**"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Copy(context.Background(), from, to, workspace.Copying{Choose: all.Top(), Max: 1000, MaxFiles: 7, Inward: true}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a.txt": "a", "bin/run.sh": "#!/bin/sh", "near": "a", "inside/run.sh": "#!/bin/sh", "sub/inside/run.sh": "#!/bin/sh", "outside": "far"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	for _, name := range []string{".git", "sub/.GIT", ".wf", "pipe"} {
		if _, err := os.Lstat(filepath.Join(to, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was copied: %v", name, err)
		}
	}
	if info, _ := os.Stat(filepath.Join(to, "bin/run.sh")); info.Mode().Perm() != 0o755 {
		t.Errorf("the script has mode %s", info.Mode())
	}
	if info, _ := os.Stat(filepath.Join(to, "a.txt")); !info.ModTime().Equal(when) {
		t.Errorf("the file is of %s", info.ModTime())
	}
	if target, _ := os.Readlink(filepath.Join(to, "inside")); target != "bin" {
		t.Errorf("a link leads out of the copy to %s", target)
	}
}

func TestACopyHasItsLimits(t *testing.T) {
	from := t.TempDir()
	makeFile(t, from, "a", "12345", 0o644)
	makeFile(t, from, "b", "12345", 0o644)
	all, err := tree.NewGlobs([]string{"**"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		files int
		large bool
	}{{0, false}, {2, false}, {1, true}} {
		_, err := workspace.Copy(context.Background(), from, t.TempDir(), workspace.Copying{Choose: all.Top(), Max: 10, MaxFiles: c.files})
		if large, _ := errors.AsType[*workspace.CopyError](err); (large != nil) != c.large || !c.large && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// What cannot be written by its mode alone is removed all the same.
func TestADirectoryThatCannotBeWrittenIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	makeFile(t, dir, "mod/pkg/file.go", "x", 0o444)
	for _, name := range []string{"mod/pkg", "mod"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := workspace.RemoveAll(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
