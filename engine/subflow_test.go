package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine"
	"wf/protocol"
)

func TestASubWorkflowHandsItsQuestionUpAndTheAnswerDown(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(strings.Replace(gateYAML, "name: gate", "name: child\ninputs: {x: {type: integer, required: true}}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	id, v := b.run(`
wf: 1
name: parent
roles:
  sub: {workflow: child.yaml, with: {x: 7}}
outputs: {said: "${{ steps.sub.output.said }}"}
`, nil)
	if v.Status != protocol.Waiting || v.Waiting[0].Step != "sub#1" || v.Waiting[0].Question != "Deploy 1?" {
		t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Choice: "yes", Text: "fine"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != done || string(v.Outputs) != `{"said":"yes: fine"}` {
		t.Fatalf("%s (%s) %s %v", v.Status, v.Reason, v.Outputs, steps(v))
	}
}

const formsYAML = `
wf: 1
name: forms
roles:
  age: {ask: "How old?", form: {type: object, required: [age], properties: {age: {type: integer}}}}
  name: {ask: "Which name?"}
outputs: {age: "${{ steps.age.output.age }}", name: "${{ steps.name.output.text }}"}
`

// forms is a run that waits in a sub-workflow which asks with a form, and then for a name.
func (b *bench) forms() protocol.RunID {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(formsYAML), 0o600); err != nil {
		b.t.Fatal(err)
	}
	id, v := b.run("wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\noutputs: {all: \"${{ steps.sub.output }}\"}\n", nil)
	if v.Status != protocol.Waiting || v.Waiting[0].Question != "How old?" {
		b.t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
	return id
}

func TestASubWorkflowHandsItsFormUp(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id := b.forms()
	if v := b.view(id); !strings.Contains(string(v.Waiting[0].Form), `"age"`) {
		t.Errorf("the form is %s", v.Waiting[0].Form)
	}
	for _, wrong := range []engine.Reply{{Fields: protocol.JSON(`{"age":"old"}`)}, {Text: "36"}} {
		if _, err := b.e.Answer(ctx, id, wrong); !errors.Is(err, protocol.ErrAnswer) {
			t.Errorf("%+v: %v, want a refusal", wrong, err)
		}
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Fields: protocol.JSON(`{"age":36}`)}); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != protocol.Waiting || v.Waiting[0].Question != "Which name?" || len(v.Waiting[0].Form) > 0 {
		t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Text: "Ada"}); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != done || string(v.Outputs) != `{"all":{"age":36,"name":"Ada"}}` {
		t.Errorf("%s (%s) %s", v.Status, v.Reason, v.Outputs)
	}
}

// The fields of a form keep the order in which the file of the sub-workflow has them, however deep
// it lies, and also in a fork under another definition.
func TestTheFormOfASubWorkflowIsInTheOrderOfItsFile(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	const form = "wf: 1\nname: inner\nroles:\n  who: {ask: \"Who?\", form: {type: object, properties: {%s: {type: string}, %s: {type: string}}}}\n"
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	order := func(id protocol.RunID) []string {
		t.Helper()
		v := b.drive(id)
		if v.Status != protocol.Waiting {
			t.Fatalf("%s (%s)", v.Status, v.Reason)
		}
		var names []string
		for _, f := range protocol.FormFields(string(v.Waiting[0].Form)) {
			names = append(names, f.Name)
		}
		return names
	}
	write("inner.yaml", fmt.Sprintf(form, "zip", "name"))
	write("middle.yaml", "wf: 1\nname: middle\nroles: {inner: {workflow: inner.yaml}}\n")
	const outer = "wf: 1\nname: outer\nroles: {middle: {workflow: middle.yaml}}\n"
	id, _ := b.run(outer, nil)
	if diff := cmp.Diff([]string{"zip", "name"}, order(id)); diff != "" {
		t.Errorf("fields of a grandchild (-written +asked):\n%s", diff)
	}

	write("inner.yaml", fmt.Sprintf(form, "town", "age"))
	fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: b.seqOf(id, "middle#1", protocol.EvStepStarted) - 1, With: b.load(outer), Source: []byte(outer)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"town", "age"}, order(fork)); diff != "" {
		t.Errorf("fields in a fork with another definition (-written +asked):\n%s", diff)
	}
}

// What was said to a question that was answered elsewhere meanwhile answers no other one.
func TestAnAnswerIsHandedDownToItsOwnQuestionOnly(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id := b.forms()
	heads, err := b.e.Store.Heads(ctx, "run/")
	if err != nil {
		t.Fatal(err)
	}
	var child protocol.RunID
	for _, h := range heads {
		if run := protocol.RunID(strings.TrimPrefix(h.Name, "run/")); run != id {
			child = run
		}
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Fields: protocol.JSON(`{"age":36}`), Text: "not a name"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.Answer(ctx, child, engine.Reply{Fields: protocol.JSON(`{"age":40}`)}); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(child); v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	if v := b.drive(id); v.Status != protocol.Waiting || v.Waiting[0].Question != "Which name?" {
		t.Errorf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
}
