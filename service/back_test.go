package service

import (
	"errors"
	"testing"

	"wf/api"
	"wf/protocol"
)

// A conversation goes back to a turn that is named by its step, its number, or by what was left before it.
func TestC05TheTurnThatIsMeant(t *testing.T) {
	turns := []api.Turn{{Step: "you#1", Said: 1, Ended: []string{"wf#1", "check#1"}}, {Step: "you#2", Said: 2, Ended: []string{"wf#2"}}, {Step: "you#2", Said: 3}, {Step: "you#3", Said: 4, Ended: []string{"wf#3"}}}
	for to, want := range map[string]protocol.Seq{"": 4, "you#1": 1, "you#2": 3, "you#3": 4, "wf#1": 2, "check#1": 2, "wf#2": 3, "1": 1, "4": 4} {
		if got, err := turnTo(turns, to); got.Said != want || err != nil {
			t.Errorf("%q is %d, %v", to, got.Said, err)
		}
	}
	for to, want := range map[string]error{"wf#3": protocol.ErrUsage, "0": protocol.ErrUnknownStep, "5": protocol.ErrUnknownStep, "-1": protocol.ErrUnknownStep, "none#1": protocol.ErrUnknownStep} {
		if _, err := turnTo(turns, to); !errors.Is(err, want) {
			t.Errorf("%q: %v", to, err)
		}
	}
	if _, err := turnTo(nil, ""); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("of no turns: %v", err)
	}
}
