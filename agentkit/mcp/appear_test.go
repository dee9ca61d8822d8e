package mcp

import (
	"os"
	"path/filepath"
	"testing"

	"wf/agentkit/tool"
	"wf/protocol"
)

// What the program of a server leaves in the workspace is told with the result of the call.
func TestWhatAProgramLeavesIsTold(t *testing.T) {
	dir := t.TempDir()
	p := &Pool{Dir: dir}
	leave := func(name string) func() (tool.Result, error) {
		return func() (tool.Result, error) {
			return tool.Result{Content: "done"}, os.MkdirAll(filepath.Join(dir, name, ".git"), 0o755)
		}
	}
	r, err := p.watched(protocol.MCPServer{Command: []string{"program"}}, leave("sub"))
	if err != nil || r.Appeared.String() != "made a git repository in sub/: wf does not act on it; your git may" {
		t.Errorf("%v, %v", r.Appeared, err)
	}
	if r, err = p.watched(protocol.MCPServer{URL: "http://localhost"}, leave("other")); err != nil || r.Appeared != nil {
		t.Errorf("a server elsewhere left %v, %v", r.Appeared, err)
	}
}
