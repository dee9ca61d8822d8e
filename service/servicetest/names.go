package servicetest

import (
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// names finds runs by the beginnings of their ids, whatever the case of either; an imported run has any id.
func names(t *testing.T, suite Suite) {
	s := suite.open(t)
	run := begin(t, s, "roads")
	archive := exported(t, s, run)
	for _, id := range []protocol.RunID{"Trip-2024", "trip-2025", "trip", "ёлка"} {
		must(imported(t.Context(), s, archive, api.ImportOptions{Run: id}))(t)
	}
	for text, want := range map[string]string{
		string(run): string(run), strings.ToLower(string(run)): string(run), strings.ToLower(string(run[:6])): string(run),
		"Trip-2024": "Trip-2024", "trip-2024": "Trip-2024", "TRIP-2025:gate#1": "trip-2025:gate#1", "trip": "trip", "ёл": "ёлка",
	} {
		got, err := s.Resolve(t.Context(), text)
		if err != nil || got.String() != want {
			t.Errorf("%s is %s, want %s: %v", text, got, want, err)
		}
	}
	for text, want := range map[string]*protocol.Error{"Trip-20": protocol.ErrAmbiguous, "trips": protocol.ErrUnknownRun, "": protocol.ErrUnknownRun, "..": protocol.ErrUnknownRun} {
		if got, err := s.Resolve(t.Context(), text); protocol.CodeOf(err) != want.Code {
			t.Errorf("%q is %s: %v, want %s", text, got, err, want.Code)
		}
	}
}
