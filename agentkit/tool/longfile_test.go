package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/tool"
)

// A file with a hole of a terabyte takes no disk; to edit it would take all memory.
func TestAFileThatIsTooLongIsNotEdited(t *testing.T) {
	at := tool.Workspace{Dir: t.TempDir()}
	file := filepath.Join(at.Dir, "f")
	if err := errors.Join(os.WriteFile(file, []byte("head"), 0o600), os.Truncate(file, 1<<40)); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]args{
		"edit_file":  {"path": "f", "old": "head", "new": "tail"},
		"write_file": {"path": "f", "content": "a [secret:KEY] stays"},
	} {
		if r := call(t, at, name, a); !r.IsError || !strings.Contains(r.Content, "has more than 16777216 bytes") {
			t.Errorf("%s: %q", name, r.Content)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 1<<40 {
		t.Errorf("the file is %v, %v", info, err)
	}
}
