package render

import (
	"testing"

	"wf/api"
	"wf/protocol"
)

func TestTheFieldsOfAnAnswerAreToldAndNotTheirFences(t *testing.T) {
	for text, want := range map[string][2]string{
		"---\nstatus: done\nverdict: accept\n---\n":           {"said status: done, verdict: accept", "status: done, verdict: accept"},
		"---\nstatus: done\n---\n\nFirst.\nAll tests pass.\n": {"said status: done …", "All tests pass."},
		"No fields.\n---\nThe end.":                           {"said No fields. …", "The end."},
		"---\nnot closed":                                     {"said --- …", "not closed"},
	} {
		if got := Event(protocol.TextSaid{Content: protocol.NewText(text)}); got != want[0] {
			t.Errorf("log: %q, want %q", got, want[0])
		}
		if got := said(&api.Step{Text: text}); got != want[1] {
			t.Errorf("show: %q, want %q", got, want[1])
		}
	}
}
