package mcp

import (
	"testing"

	"wf/roles/rolestest"
)

// The tests of walls once more, as a user who may do nothing.
func TestServersWithoutRoot(t *testing.T) {
	rolestest.Unprivileged(t, "TestWhatACommandNamesOfTheWorkspaceIsKnown", "-test.run", "Workspace|Confined|Walls")
}
