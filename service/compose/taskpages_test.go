package compose

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

// The id of a task may come from another machine: in a journal that was imported, or from a server.
func TestTheIDOfATaskNamesNoFileElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pages")
	for _, id := range []string{"../coder#1", "a/b#1", `a\b#1`, "/etc/x#1", "a\x00#1", ""} {
		if path, err := WriteTask(dir, id, "page"); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%q is written to %s, %v", id, path, err)
		}
	}
	path, err := WriteTask(dir, "coder#1[2]", "page")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "page" || path != filepath.Join(dir, "coder#1[2].md") {
		t.Errorf("%s holds %q, %v", path, b, err)
	}
}
