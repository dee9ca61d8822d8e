package main

import (
	"context"
	"errors"
	"strings"
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

// Commands below another one do not pass over --hub and WF_HUB: they would work on a store that was not
// asked for.
func TestNoCommandPassesOverTheHub(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("WF_STORE", dir)
	for _, line := range []string{"memory add x", "memory ls", "task ls", "task show", "cas show bafy", "store adopt", "gc --yes"} {
		got := wfMain(append([]string{"--hub", "unix:/nowhere"}, strings.Fields(line)...)...)
		if got.exit != 2 || !strings.Contains(got.stderr, "works on the store of this machine, not on unix:/nowhere") {
			t.Errorf("wf %s: %s", line, got)
		}
		t.Setenv("WF_HUB", "unix:/anywhere")
		if got := wfMain(strings.Fields(line)...); got.exit != 2 || !strings.Contains(got.stderr, "not on unix:/anywhere") {
			t.Errorf("WF_HUB=unix:/anywhere wf %s: %s", line, got)
		}
		t.Setenv("WF_HUB", "")
	}
}
