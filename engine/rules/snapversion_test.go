package rules_test

import (
	"testing"

	"wf/engine/rules"
)

// Snapshots of version 10 hold the error of an attempt behind the start of the next one, and not whether that goes on where the one
// before ended: what was stored so is folded again, and is no fault.
func TestASnapshotOfOtherMeaningIsNotRead(t *testing.T) {
	if (&rules.Snapshot{V: 10}).Readable() {
		t.Error("version 10 is read")
	}
}
