// Package workspacetest runs tests again as another user. Only tests import it.
package workspacetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// unowning is the id of a user that owns nothing.
const unowning = 65534

// Unprivileged runs the tests of this program once more as a user without rights, with flags of the test program;
// its own directory is the home and the one for temporary files. passes is a test that must have passed there.
// A user other than root runs them as they are, so that it skips.
func Unprivileged(t *testing.T, passes string, flags ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this is not root already")
	}
	dir, err := os.MkdirTemp("/var/tmp", "wf-unprivileged-") // the directories of tests are root's alone
	if err != nil {
		t.Skip("no /var/tmp: ", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program.test")
	if err := errors.Join(os.WriteFile(program, self, 0o755), os.Chown(program, unowning, unowning), os.Chown(dir, unowning, unowning)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"-test.v"}, flags...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unowning, Gid: unowning}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+passes+" ") {
		t.Errorf("nothing was tested:\n%s", out)
	}
}
