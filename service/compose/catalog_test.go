package compose

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file of workflows that a daemon finds is one of its directory: a link from there leads to no other file of the
// user, of which its clients would read what is wrong with it.
func TestAServedWorkflowLiesInItsDirectory(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "private.yaml")
	const flow = "wf: 1\nname: %s\nroles: {a: {set: {n: 1}}}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "real.yaml"), fmt.Appendf(nil, flow, "real"), 0o600),
		os.WriteFile(outside, fmt.Appendf(nil, flow, "private"), 0o600), os.Symlink("real.yaml", filepath.Join(dir, "within.yaml")), os.Symlink(outside, filepath.Join(dir, "out.yaml")),
		os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")), syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600)); err != nil {
		t.Fatal(err)
	}
	list, err := Catalog{u: &Setup{}, Dirs: []string{dir}}.List()
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]bool{}
	for _, f := range list {
		good[filepath.Base(f.Path)] = f.Program != nil
		if strings.Contains(f.Name+f.Problem, "private.yaml") || f.Name == "private" {
			t.Errorf("%s tells of the other file: %s, %s", f.Path, f.Name, f.Problem)
		}
	}
	if want := map[string]bool{"real.yaml": true, "within.yaml": true, "out.yaml": false, "zero.yaml": false, "pipe.yaml": false}; !maps.Equal(good, want) {
		t.Errorf("served are %v", good)
	}
}
