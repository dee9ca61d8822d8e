package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAWayThroughTheWorkspaceIsKnown(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside := filepath.Join(top, "work"), filepath.Join(top, "bin")
	for _, dir := range []string{filepath.Join(root, "tools"), outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		filepath.Join(outside, "srv"):       filepath.Join(root, "tools", "srv"), // as npm link makes them
		filepath.Join(outside, "near"):      "../work/tools",
		filepath.Join(outside, "loop"):      "loop",
		filepath.Join(outside, "other"):     "/bin",
		filepath.Join(root, "tools", "out"): "/bin/sh",
		filepath.Join(top, "alias"):         root,
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		root:                       ".",
		root + "/":                 ".",
		root + "/tools/srv":        "tools/srv",
		root + "/none/at/all":      "none/at/all",
		root + "/tools/out":        "tools/out",
		outside + "/srv":           "tools/srv",
		outside + "/near/x.sh":     "tools/x.sh",
		top + "/alias/tools/x":     "tools/x",
		outside + "/../work/tools": "tools",
		root + "/./tools":          "./tools",
		root + "/../bin/tool":      "",
		outside + "/other/sh":      "",
		outside + "/loop":          "",
		root + "2/tools":           "",
		"/usr/bin/env":             "",
	} {
		rel, ok := Through(root, path)
		if rel != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", path, rel, ok, want)
		}
	}
	if rel, ok := Through(filepath.Join(top, "alias"), root+"/x"); rel != "x" || !ok {
		t.Errorf("a workspace that is a link: %q, %v", rel, ok)
	}
}
