package render

import (
	"testing"

	"wf/api"
	"wf/protocol"
)

// What is suggested is what the question marks as primary, so that a command that may have acted
// is not suggested to be run again; of unmarked choices it is the first.
func TestTheSuggestedAnswerIsThePrimaryOne(t *testing.T) {
	ask := func(choices ...protocol.Choice) *api.Run {
		return &api.Run{ID: "RUN", Status: protocol.Waiting, Waiting: []api.Waiting{{Step: "a#1", Kind: protocol.WaitChoice, Choices: choices}}}
	}
	for want, v := range map[string]*api.Run{
		"wf answer RUN:a#1 --choice fail":       ask(protocol.Choice{Value: "again"}, protocol.Choice{Value: "fail", Primary: true}),
		"wf answer RUN:a#1 --choice again":      ask(protocol.Choice{Value: "again"}, protocol.Choice{Value: "fail"}),
		"wf answer RUN:a#1 --choice 'not that'": ask(protocol.Choice{Value: "not that"}),
	} {
		if got := Next(v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
