package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// A value that no environment takes reaches a command, to the byte, and each attempt of it.
func TestALargeValueReachesACommandByItsStdin(t *testing.T) {
	b := newBench(t)
	big := strings.Repeat("a\x00\r\n\U0001F642ü\t", 5<<20/10) + "\n"
	_, v := b.run(`
wf: 1
name: large
inputs: {text: {type: string, required: true}}
roles:
  pass: {set: {list: [1, two]}}
  sum: {run: "sha256sum | cut -d ' ' -f 1", stdin: "${{ inputs.text }}"}
  json: {run: 'cat; test "$WF_ATTEMPT" = 2', stdin: "n=${{ steps.pass.output.list }}\n", retry: {attempts: 2, delay: 1ms}}
edges:
  - {from: pass, to: sum}
  - {from: sum, to: json}
  - {from: json, to: END}
outputs: {sum: "${{ steps.sum.text }}", json: "${{ steps.json.text }}"}
`, map[string]any{"text": big})
	var got map[string]string
	if err := json.Unmarshal(v.Outputs, &got); err != nil {
		t.Fatalf("%s: %s: %v", v.Status, v.Reason, err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(big)))
	if got["sum"] != want || got["json"] != `n=[1,"two"]` {
		t.Errorf("have %v, want the sum %s", got, want)
	}
}

// A command that was cut off reads from the beginning when its run goes on.
func TestACommandThatIsRunAgainReadsItsStdinFromTheBeginning(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id, _, err := b.e.Begin(ctx, engine.Launch{Program: b.load(`
wf: 1
name: again
roles: {a: {run: 'head -c 3; test -e go || sleep 60; cat', stdin: "abcdef"}}
outputs: {text: "${{ steps.a.text }}"}
`), Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	b.e.Watch = func(n api.Update) {
		if speaks(n) {
			cancel()
		}
	}
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.e.Watch = nil
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); v.Status != protocol.Done || string(v.Outputs) != `{"text":"abcdef"}` {
		t.Errorf("%s: %s: %s", v.Status, v.Reason, v.Outputs)
	}
}
