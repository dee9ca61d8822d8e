package tool_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/protocol"
)

// What a file tool writes on which programs of the user act is told with its result.
func TestAFileToolTellsWhatAppears(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ".git/config", "[core]\n\thooksPath = .husky\n")
	write(t, dir, "real/file", "x")
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir, path string
		want      []protocol.Found
	}{
		{"", "main.go", nil},
		{"", "evil/HEAD", nil},
		{"", "evil/refs/x", nil},
		{"", "evil/objects/x", []protocol.Found{{Kind: protocol.FoundBare, Path: "evil/"}}},
		{"", "evil/objects/y", nil},
		{"", "a/.envrc", []protocol.Found{{Kind: protocol.FoundEnvrc, Path: "a/"}}},
		{"", "a/.envrc", []protocol.Found{{Kind: protocol.FoundEnvrc, Path: "a/", Changed: true}}},
		{"", ".vscode/tasks.json", []protocol.Found{{Kind: protocol.FoundTasks, Path: ".vscode/tasks.json"}}},
		{"", ".husky/pre-commit", []protocol.Found{{Kind: protocol.FoundHooks, Path: ".husky"}}},
		{"link", ".envrc", []protocol.Found{{Kind: protocol.FoundEnvrc, Path: "real/"}}},
	} {
		r := call(t, tool.Workspace{Root: dir, Dir: filepath.Join(dir, c.dir)}, "write_file", args{"path": c.path, "content": "content"})
		var got []protocol.Found
		if r.Appeared != nil {
			got = r.Appeared.Found
		}
		if d := cmp.Diff(c.want, got); r.IsError || d != "" {
			t.Errorf("%s: %q\n%s", c.path, r.Content, d)
		}
	}
	r := call(t, tool.Workspace{Dir: dir}, "edit_file", args{"path": ".husky/pre-commit", "old": "content", "new": "other"})
	if want := "changed what git runs or reads as settings, .husky: wf does not act on it; your git may"; r.Appeared.String() != want {
		t.Errorf("%q", r.Appeared)
	}
}

// So is what a command leaves, within the sandbox and without one.
func TestACommandTellsWhatAppears(t *testing.T) {
	for _, how := range []string{"", sandbox.Off} {
		if how == "" && !sandbox.Probe().Holds {
			continue
		}
		dir := t.TempDir()
		for _, line := range []string{"mkdir -p sub/.git", "mkdir -p other/.git && sleep 60"} {
			r := call(t, tool.Workspace{Dir: dir, Sandbox: how}, "shell", args{"command": line, "timeout": 1})
			if want := filepath.Dir(filepath.Dir(line[len("mkdir -p "):])); r.Appeared == nil || len(r.Appeared.Found) != 1 {
				t.Errorf("sandbox %q, %s, %s: %v", how, line, want, r.Appeared)
			}
		}
		if r := call(t, tool.Workspace{Dir: dir, Sandbox: how}, "shell", args{"command": "echo x > file"}); r.Appeared != nil {
			t.Errorf("of nothing it tells %v", r.Appeared)
		}
	}
}
