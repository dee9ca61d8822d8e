package cas_test

import (
	"testing"

	"wf/cas/castest"
)

func TestCopy(t *testing.T) {
	dir := castest.Directory
	castest.ExerciseCopy(t, dir, dir)
}
