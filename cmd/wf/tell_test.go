package main

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
		if got := tell(protocol.TextSaid{Content: protocol.NewText(text)}); got != want[0] {
			t.Errorf("log: %q, want %q", got, want[0])
		}
		if got := said(&api.Step{Text: text}); got != want[1] {
			t.Errorf("show: %q, want %q", got, want[1])
		}
	}
}

func TestTheHintSuggestsTheMarkedChoice(t *testing.T) {
	v := &api.Run{ID: "RUN", Status: protocol.Waiting, Waiting: []api.Waiting{{Step: "deploy#1", Kind: protocol.WaitChoice,
		Choices: []protocol.Choice{{Label: "Run it again", Value: "again"}, {Label: "Count it as failed", Value: "fail", Primary: true}}}}}
	if got, want := next(v), "wf answer RUN:deploy#1 --choice fail"; got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}
