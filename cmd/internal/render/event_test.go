package render

import (
	"strings"
	"testing"
	"time"

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

// All times of a line are in one zone: that of the time with which it begins.
func TestF214ALineHasTheTimesOfOneZone(t *testing.T) {
	was := time.Local
	time.Local = time.FixedZone("far away", 9*3600)
	t.Cleanup(func() { time.Local = was })
	const at, due = 1_900_000_000_000_000, 1_900_000_030_000_000
	for _, data := range []protocol.Data{
		protocol.AttemptFailed{Attempt: 1, RetryAt: due},
		protocol.WaitingFor{Kind: protocol.WaitTimer, Due: due},
		protocol.Escalated{Due: due},
	} {
		line := eventLine(&protocol.Entry{Event: protocol.Event{TS: at}}, Event(data))
		if !strings.HasPrefix(line, "2030-03-17T17:46:40.000Z  ") || !strings.HasSuffix(line, " 2030-03-17T17:47:10.000Z") {
			t.Errorf("%s", line)
		}
	}
}
