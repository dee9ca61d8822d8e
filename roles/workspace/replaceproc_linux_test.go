package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Where a file without a name cannot get one, as where no /proc is, it is written under its temporary name.
func TestAFileIsReplacedWhereNoneCanBeNamedLater(t *testing.T) {
	if dir := os.Getenv("WF_TEST_NO_PROC"); dir != "" {
		if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", "/proc", "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		replace(t, dir, "old", 3)
		replace(t, dir, "new", 3)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a /proc of its own")
	}
	dir := t.TempDir()
	lay(t, dir, map[string]string{"old": "text"})
	if err := os.Chmod(filepath.Join(dir, "old"), 0o640); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "WF_TEST_NO_PROC="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if s, err := os.Stat(filepath.Join(dir, "old")); err != nil || s.Mode().Perm() != 0o640 || s.Size() != 3 {
		t.Errorf("%v, %v", s, err)
	}
}
