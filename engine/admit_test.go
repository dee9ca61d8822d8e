package engine_test

import (
	"context"
	"errors"
	"testing"

	"wf/engine"
	"wf/protocol"
)

// What Admit refuses is not written: neither a run, nor a fork, nor that somebody wanted to go on.
func TestWhatIsNotAdmittedLeavesNoTrace(t *testing.T) {
	b := newBench(t)
	const yaml = `
wf: 1
name: two
limits: {steps: 1}
roles:
  a: {set: {n: 1}}
  c: {set: {n: 2}}
`
	id, v := b.run(yaml, nil)
	if v.Status != protocol.Suspended {
		t.Fatalf("it is %s", v.Status)
	}
	var asked []engine.Candidate
	refuse := protocol.ErrPrice
	b.e.Admit = func(c engine.Candidate) error {
		asked = append(asked, c)
		return refuse
	}
	before := b.view(id).Head
	heads := func() int {
		all, err := b.e.Store.Heads(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	runs := heads()

	p := b.load(yaml)
	if _, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Workspace: b.dir}); !errors.Is(err, refuse) {
		t.Errorf("begin: %v", err)
	}
	if _, err := b.e.Fork(t.Context(), id, engine.ForkOptions{At: 1}); !errors.Is(err, refuse) {
		t.Errorf("fork: %v", err)
	}
	raised := []protocol.LimitChanged{{Limit: "tokens", Max: 7}}
	if _, err := b.e.Drive(context.Background(), id, engine.DriveOptions{Limits: raised}); !errors.Is(err, refuse) {
		t.Errorf("drive: %v", err)
	}
	if heads() != runs || b.view(id).Head != before {
		t.Error("something was written")
	}
	if len(asked) != 3 || !asked[0].New || !asked[1].Fork || asked[2].Limits.Tokens != 7 || asked[2].Run != id {
		t.Errorf("it was asked for %+v", asked)
	}

	b.e.Admit = nil
	fork, err := b.e.Fork(t.Context(), id, engine.ForkOptions{At: 1, Limits: []protocol.LimitChanged{{Limit: "steps", Max: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.drive(fork); v.Status != protocol.Done {
		t.Errorf("a fork with a higher limit is %s: %s", v.Status, v.Reason)
	}
}
