package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wf/roles/workspace"
)

// A program starts in the directory that was opened, whatever takes its name in between.
func TestAProgramStartsInTheDirectoryThatWasOpened(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	write(t, root+"/sub/file", "x")
	for _, dir := range []string{"sub", root + "/sub"} {
		cwd, err := workspace.Enter(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(root+"/sub", root+"/moved"), os.Symlink(outside, root+"/sub")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("pwd", "-P")
		cmd.Dir = cwd.Path
		out, err := cmd.Output()
		cwd.Close()
		if _, proc := os.Stat("/proc/self/fd"); proc == nil && (err != nil || string(out) != root+"/moved\n") {
			t.Errorf("it started in %q (%v)", out, err)
		}
		if cwd, err := workspace.Enter(root, dir); !workspace.Outside(err) {
			t.Errorf("a link to %s is entered: %v, %v", outside, cwd, err)
		}
		if err := errors.Join(os.Remove(root+"/sub"), os.Rename(root+"/moved", root+"/sub")); err != nil {
			t.Fatal(err)
		}
	}
}
