package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
