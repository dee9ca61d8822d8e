package render

import (
	"testing"

	"wf/api"
	"wf/protocol"
)

func TestTheFieldsOfAnAnswerAreToldAndNotTheirFences(t *testing.T) {
	for text, want := range map[string][2]string{
		"---\nverdict: approve\nreason: tests pass\n---\n":    {"said verdict: approve · reason: tests pass", "verdict: approve · reason: tests pass"},
		"---\nstatus: done\n---\n\nFirst.\nAll tests pass.\n": {"said First. …", "All tests pass."},
		"---\nstatus: done\n---\n":                            {"said status: done", "status: done"},
		"---\nstatus: blocked\n---\nNo key.":                  {"said status: blocked · No key.", "status: blocked · No key."},
		"---\n'list':\n  - a\n  - b\nat: {x: 1}\n---":         {`said list: ["a","b"] · at: {"x":1}`, `list: ["a","b"] · at: {"x":1}`},
		"No fields.\n---\nThe end.":                           {"said No fields. …", "The end."},
		"---\nnot closed":                                     {"said not closed", "not closed"},
		"---\n[1]\n---\nno mapping":                           {"said [1] …", "no mapping"},
		"---\n---\n":                                          {"said ", ""},
	} {
		if got := Event(protocol.TextSaid{Content: protocol.NewText(text)}); got != want[0] {
			t.Errorf("log: %q, want %q", got, want[0])
		}
		if got := said(&api.Step{Text: text}); got != want[1] {
			t.Errorf("show: %q, want %q", got, want[1])
		}
	}
}
