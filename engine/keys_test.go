package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/protocol"
	"wf/roles"
)

// What the keys that several actions share do beside each of them.

// performs is a performer made of a function.
type performs func(context.Context, protocol.Turn) (protocol.Conclusion, error)

func (f performs) Perform(ctx context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	return f(ctx, turn)
}

// child writes the sub-workflow that the workflows of a test name child.yaml.
func (b *bench) child(yaml string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(yaml), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// An attempt that takes longer than its timeout is a failure, which an edge takes.
func TestATimeoutIsAFailureOfWhatWorks(t *testing.T) {
	for name, action := range map[string]string{"run": "run: sleep 60", "prompt": "prompt: Think.", "workflow": "workflow: child.yaml"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.e.Performers[protocol.ActPrompt] = performs(func(ctx context.Context, _ protocol.Turn) (protocol.Conclusion, error) {
				<-ctx.Done()
				return protocol.Conclusion{}, context.Cause(ctx)
			})
			b.child("wf: 1\nname: child\nroles: {a: {run: sleep 60}}\n")
			_, v := b.run("wf: 1\nname: slow\nroles:\n  a: {"+action+", timeout: 50ms}\n  b: {set: {status: \"${{ steps.a.status }}\"}}\nedges:\n"+
				"  - {from: a, to: END}\n  - {from: a, to: b, on: failure}\n  - {from: b, to: END}\noutputs: {was: \"${{ steps.b.output.status }}\"}\n", nil)
			if v.Status != done || string(v.Outputs) != `{"was":"failed"}` {
				t.Errorf("%s (%s): %s, %v", v.Status, v.Reason, v.Outputs, steps(v))
			}
		})
	}
}

// A further attempt is made of a command, of an agent, and of a sub-workflow whose run was not
// over: it is gone on with.
func TestAFurtherAttemptIsMadeOfWhatWorks(t *testing.T) {
	once := "test -e once || { touch once; exit 75; }"
	for name, action := range map[string]string{
		"run":      "run: '" + once + "', retry: {attempts: 2, delay: 1ms, on: exit_75}",
		"prompt":   "prompt: Think., retry: {attempts: 2, delay: 1ms, on: [timeout, server_error]}",
		"workflow": "workflow: child.yaml, timeout: 1s, retry: {attempts: 50, delay: 1ms, on: timeout}",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.e.Performers[protocol.ActPrompt] = performs(func(_ context.Context, turn protocol.Turn) (protocol.Conclusion, error) {
				if turn.Attempt == 1 {
					return protocol.Conclusion{}, &protocol.Failure{Class: "server_error", ErrorInfo: protocol.ErrorInfo{Code: "server_error", Message: "503"}}
				}
				return protocol.Conclusion{Data: protocol.JSON(`{}`)}, nil
			})
			b.child("wf: 1\nname: child\nroles: {a: {run: 'test -e once || { touch once; sleep 60; }'}}\n")
			_, v := b.run("wf: 1\nname: again\nroles:\n  a: {"+action+"}\n", nil)
			if v.Status != done || len(v.Steps[0].Attempts) < 2 {
				t.Errorf("%s (%s), %+v", v.Status, v.Reason, v.Steps)
			}
		})
	}
}

// A bound and route: all hold for roles of every action.
func TestEveryRoleIsBoundedAndRouted(t *testing.T) {
	for name, action := range everyAction {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.e.Performers[protocol.ActPrompt] = performs(func(context.Context, protocol.Turn) (protocol.Conclusion, error) {
				return protocol.Conclusion{Data: protocol.JSON(`{}`)}, nil
			})
			b.e.Performers[protocol.ActAsk] = b.e.Performers[protocol.ActPrompt]
			b.child("wf: 1\nname: child\nroles: {a: {set: {x: 1}}}\n")
			_, v := b.run("wf: 1\nname: bounds\nroles:\n  a: {"+action+", max_visits: 2, route: all}\n  b: {set: {x: 1}}\nedges:\n"+
				"  - {from: START, to: a}\n  - {from: a, to: b}\n  - {from: a, to: a, on_limit: END}\n  - {from: b, to: END}\n", nil)
			if got := strings.Join(steps(v), ", "); v.Status != done || !strings.Contains(got, "a#2 ok") || strings.Contains(got, "a#3") || !strings.Contains(got, "b#2 ok") {
				t.Errorf("%s (%s): %s", v.Status, v.Reason, got)
			}
		})
	}
}

var everyAction = map[string]string{"run": "run: 'true'", "prompt": "prompt: Think.", "workflow": "workflow: child.yaml",
	"ask": "ask: Why?", "wait": "wait: 1ms", "set": "set: {x: 1}"}

// With continue_on_error what fails goes on as data; of questions, waits and values that is an
// expression that has no value.
func TestAFailureIsDataWhateverTheRoleDoes(t *testing.T) {
	for name, action := range map[string]string{
		"run": "run: exit 3", "prompt": "prompt: Think.", "workflow": "workflow: child.yaml",
		"ask": `ask: "${{ inputs.none.x }}"`, "wait": `wait: "${{ inputs.none.x }}"`, "set": `set: {x: "${{ inputs.none.x }}"}`,
	} {
		for _, tolerant := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", name, tolerant), func(t *testing.T) {
				b := newBench(t)
				b.e.Performers[protocol.ActPrompt] = performs(func(context.Context, protocol.Turn) (protocol.Conclusion, error) {
					return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "server_error", Message: "503"}}
				})
				b.child("wf: 1\nname: child\nroles: {a: {set: {x: 1}}}\nedges: [{from: a, to: FAIL}]\n")
				_, v := b.run(fmt.Sprintf("wf: 1\nname: data\ninputs: {none: {default: null}}\nroles:\n  a: {%s, continue_on_error: %v}\n  b: {set: {x: 1}}\n", action, tolerant), nil)
				want := protocol.Suspended
				if tolerant {
					want = done
				}
				if v.Status != want {
					t.Errorf("%s (%s), want %s: %v", v.Status, v.Reason, want, steps(v))
				}
			})
		}
	}
}
