package mcp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user that owns nothing.
const nobody = 65534

// TestServersWithoutRoot runs the tests of walls once more as a user who may do nothing.
func TestServersWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root already")
	}
	dir, err := os.MkdirTemp("/var/tmp", "wf-mcp-nobody-")
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
	binary := filepath.Join(dir, "mcp.test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, binary} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", "Workspace|Confined|Walls")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestWhatACommandNamesOfTheWorkspaceIsKnown") {
		t.Errorf("nothing was tested:\n%s", out)
	}
}
