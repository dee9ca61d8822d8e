package appear_test

import (
	"testing"

	"wf/roles/rolestest"
)

// The tests of this package once more, as a user who may do nothing.
func TestWithoutRoot(t *testing.T) { rolestest.Unprivileged(t, "TestADirectoryThatCannotBeReadIsTold") }
