package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A file that cannot be written is an error of its own: the archive has no fault.
func TestAFullDiskIsNoFaultOfTheArchive(t *testing.T) {
	t.Parallel()
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("needs " + full)
	}
	p := newPlace(t)
	write(t, p.dir, "quick.yaml", "wf: 1\nname: quick\nroles: {quick: {run: echo quick, timeout: 1m}}\n")
	p.wf(0, "run", "quick.yaml", "-q")
	cmd := exec.Command("wf", "export", "-1", "-o", full)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	if status := exitOf(t, err); status != 5 || !strings.Contains(string(out), "no space left") || strings.Contains(string(out), "CAR") {
		t.Errorf("wf export -o %s: exit %d\n%s", full, status, out)
	}
}
