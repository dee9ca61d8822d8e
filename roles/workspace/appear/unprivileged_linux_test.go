package appear_test

import (
	"testing"

	"wf/roles/workspace/workspacetest"
)

// The tests of this package once more, as a user who may do nothing.
func TestWithoutRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("the same tests once more")
	}
	workspacetest.Unprivileged(t, "TestADirectoryThatCannotBeReadIsOpened")
}
