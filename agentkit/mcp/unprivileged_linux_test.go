package mcp

import (
	"testing"

	"wf/roles/workspace/workspacetest"
)

// The tests of walls once more, as a user who may do nothing.
func TestServersWithoutRoot(t *testing.T) {
	workspacetest.Unprivileged(t, "TestWhatACommandNamesOfTheWorkspaceIsKnown", "-test.run", "Workspace|Confined|Walls")
}
