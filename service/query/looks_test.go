package query

import (
	"slices"
	"testing"

	"wf/api"
	"wf/protocol"
)

// A look that names a hundred of many visits says once how many there were besides.
func TestC03VisitsThatAreNotNamedAreCounted(t *testing.T) {
	w := looker{out: &api.Looks{}, acts: map[string]int{}}
	for _, d := range []protocol.FilesAt{
		{Phase: protocol.FilesBefore, Overlaps: nil},
		{Phase: protocol.FilesCall},
		{Phase: protocol.FilesAfter, Overlaps: []string{"b#1", "R:c#1"}, OverlapsCount: 7},
	} {
		for _, step := range []string{"a#1", "z#1"} {
			w.look(&protocol.Entry{}, step, d)
		}
	}
	want := []string{"5 others", "R:c#1", "a#1", "b#1", "z#1"}
	if got := w.out.Looks[3].By; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
