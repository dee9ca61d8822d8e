package engine

import (
	"fmt"
	"testing"
)

// Of the workspaces that agents saw, those are kept that were used last.
func TestM01WhatIsKeptOfWorkspacesThatWereSeen(t *testing.T) {
	var all sights
	first := all.of("0")
	for i := 1; i < maxSights; i++ {
		all.of(fmt.Sprint(i))
	}
	if all.of("0") != first || len(all.list) != maxSights {
		t.Fatalf("%d are kept of %d", len(all.list), maxSights)
	}
	second := all.of("1")
	all.of("0")
	all.of("one more") // 2 was used least lately
	if all.of("0") != first || all.of("1") != second || len(all.list) != maxSights {
		t.Error("another one was forgotten")
	}
	for _, s := range all.list {
		if s.dir == "2" {
			t.Error("the one that was used least lately is kept")
		}
	}
}
