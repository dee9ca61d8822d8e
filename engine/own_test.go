package engine_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// The name of a sub-workflow's run can be foretold. One that lies there already and is not of this
// user is neither driven nor believed.
func TestASubWorkflowFromElsewhereIsNotTakenOver(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	b.e.Pins = cas.NewPins(b.e.Store, t.TempDir())
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(strings.Replace(gateYAML, "name: gate", "name: child\ninputs: {x: {type: integer, required: true}}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	id, v := b.run("wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml, with: {x: 7}}\n", nil)
	if v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	children, err := b.e.Descendants(ctx, id)
	if err != nil || len(children) != 1 {
		t.Fatalf("%v, %v", children, err)
	}
	if err := b.e.Pins.Disown(ctx, children); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.Answer(ctx, children[0], engine.Reply{Choice: "yes"}); !errors.Is(err, protocol.ErrForeign) {
		t.Errorf("the child took an answer: %v", err)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "yes", Text: "fine"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != protocol.Suspended || v.Code != protocol.ErrForeign.Code {
		t.Fatalf("%s (%s), code %q", v.Status, v.Reason, v.Code)
	}
	h, err := b.e.Store.Head(ctx, protocol.RunHead(children[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.e.Pins.Adopt(ctx, []cas.Head{h}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != done {
		t.Fatalf("after it was adopted: %s (%s)", v.Status, v.Reason)
	}
}

// Runs from elsewhere may say that they are parts of one another, or of themselves: they are shown, and not driven.
func TestRunsThatArePartsOfOneAnotherAreShownAndNotDriven(t *testing.T) {
	b := newBench(t)
	b.e.Pins = cas.NewPins(b.e.Store, t.TempDir())
	ctx := context.Background()
	p := b.load("wf: 1\nname: circle\nroles:\n  a: {run: \"true\"}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: END}\n")
	parents := map[protocol.RunID]protocol.RunID{"self": "self", "one": "other", "other": "one"}
	for run, parent := range parents {
		x := engine.PartOf(engine.Launch{Program: p, Inputs: protocol.JSON("{}")}, run, protocol.ParentRun{Run: parent, Step: "a#1"})
		if _, _, err := b.e.Begin(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	for run := range parents {
		if _, err := b.e.Drive(ctx, run, engine.DriveOptions{By: "test"}); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%s was driven: %v", run, err)
		}
	}
	if err := b.e.Pins.Disown(ctx, slices.Collect(maps.Keys(parents))); err != nil {
		t.Fatal(err)
	}
	for run := range parents {
		if v := b.view(run); v.Status != protocol.Running || !v.Foreign {
			t.Errorf("%s is %s, foreign is %v", run, v.Status, v.Foreign)
		}
	}
}
