package main

import (
	"context"
	"errors"
	"testing"

	"wf/protocol"
)

// A run may end between the last event that came and the question whether it is over. What it has written
// by then is still shown.
func TestARunThatEndsMeanwhileIsShownToItsEnd(t *testing.T) {
	over, newest := true, protocol.Seq(9)
	f := &remoteFollower{until: func(context.Context) (bool, protocol.Seq, error) { return over, newest, nil }, seen: 3}
	if err := f.asked(t.Context()); err != nil || f.end != 9 {
		t.Errorf("after event 3 of 9: %v, it is asked again at %d", err, f.end)
	}
	over = false // another process goes on with it
	if err := f.asked(t.Context()); err != nil || f.end != 0 {
		t.Errorf("of a run that goes on: %v, it is asked again at %d", err, f.end)
	}
	over, f.seen = true, 9
	if err := f.asked(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("after event 9 of 9: %v", err)
	}
}
