package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/roles/workspace"
)

// By which descriptor this process finds files is in no error: agents and journals read these.
func TestC04ErrorsNamePathsNotDescriptors(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(other) // no directory: nothing below it can be opened
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hide, err := workspace.Show(dir, &workspace.View{Dir: f})
	if err != nil {
		t.Fatal(err)
	}
	defer hide()
	_, opened := workspace.Open(dir, "")
	_, found := workspace.Find(dir, "", "a", workspace.Read)
	_, real := workspace.Real(filepath.Join(dir, "a"))
	for of, err := range map[string]error{"Open": opened, "Find": found, "Real": real} {
		if err == nil || strings.Contains(err.Error(), "/proc/") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", of, err)
		}
	}
}
