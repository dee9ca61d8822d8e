package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
)

const matrixYAML = `
wf: 1
name: nightly
roles:
  list: {set: {shards: [1, 2, 3]}}
  shard: {workflow: child.yaml, with: {n: "${{ item }}"}, continue_on_error: true}
  sum: {set: {all: "${{ output }}"}}
edges:
  - {from: list, to: shard, for_each: output.shards}
  - {from: shard, to: sum}
  - {from: sum, to: END}
outputs: {all: "${{ steps.sum.output.all }}"}
`

// bad are sub-workflows whose second shard is suspended, for each of the reasons that count as a
// failure.
var bad = map[protocol.SuspendReason]string{
	protocol.ByError: `
wf: 1
name: shard
inputs: {n: {type: integer, required: true}}
roles:
  work: {run: 'test "$N" -ne 2', env: {N: "${{ inputs.n }}"}, timeout: 1m}
outputs: {n: "${{ inputs.n }}"}
`,
	protocol.ByStall: `
wf: 1
name: shard
inputs: {n: {type: integer, required: true}}
roles:
  work: {set: {n: "${{ inputs.n }}"}}
edges:
  - {from: work, to: END, when: output.n != 2}
outputs: {n: "${{ inputs.n }}"}
`,
	protocol.ByLimit: `
wf: 1
name: shard
inputs: {n: {type: integer, required: true}}
roles:
  work: {set: {n: "${{ inputs.n }}"}}
edges:
  - {from: work, to: work, when: output.n == 2, limit: 1}
  - {from: work, to: END}
outputs: {n: "${{ inputs.n }}"}
`,
}

// One bad shard does not hang a matrix: its element is null, its run stays to be looked at.
func TestABadShardIsDataForItsMatrix(t *testing.T) {
	for reason, yaml := range bad {
		t.Run(string(reason), func(t *testing.T) {
			b := newBench(t)
			b.child(yaml)
			id, v := b.run(matrixYAML, nil)
			if v.Status != done || string(v.Outputs) != `{"all":[{"n":1},null,{"n":3}]}` {
				t.Fatalf("%s (%s): %s, %v", v.Status, v.Reason, v.Outputs, steps(v))
			}
			shard := v.Steps[2]
			if shard.ID != "shard#1[1]" || shard.Status != "failed" || shard.Error == nil ||
				shard.Error.Message != "sub-workflow shard suspended by "+string(reason) || shard.Error.Code != "workflow_suspended" {
				t.Errorf("%+v, %+v", shard, shard.Error)
			}
			child := b.view(shard.Child)
			if child.Status != protocol.Suspended || child.Suspended != reason {
				t.Errorf("the run of the shard is %s (%s)", child.Status, child.Suspended)
			}
			told := shard.Attempts[0].Error.Message
			if !strings.Contains(told, child.Reason) || !strings.Contains(told, "wf show "+string(shard.Child)) {
				t.Errorf("the journal tells %q", told)
			}
			if again := b.drive(id); again.Head != v.Head {
				t.Error("a finished run moved")
			}
		})
	}
}

// A record holds neither the id of a run nor what was measured: two runs conclude the same.
func TestTheRecordOfABadShardIsTheSameInEveryRun(t *testing.T) {
	b := newBench(t)
	b.child(bad[protocol.ByError])
	_, first := b.run(matrixYAML, nil)
	_, second := b.run(matrixYAML, nil)
	for i := range first.Steps {
		if *first.Steps[i].CID != *second.Steps[i].CID {
			t.Errorf("%s: %s and %s", first.Steps[i].ID, *first.Steps[i].CID, *second.Steps[i].CID)
		}
	}
	if *first.Result != *second.Result {
		t.Errorf("results %s and %s", *first.Result, *second.Result)
	}
}

// Without continue_on_error the parent stops, and goes on when the shard was put right; a failure
// that was taken over as data stays what it is, whatever becomes of the shard.
func TestAShardThatIsPutRightIsTakenOnlyByAParentThatWaitsForIt(t *testing.T) {
	for _, tolerant := range []bool{true, false} {
		b := newBench(t)
		b.child(strings.Replace(bad[protocol.ByError], `test "$N" -ne 2`, `test "$N" -ne 2 || test -e mended`, 1))
		yaml := strings.Replace(matrixYAML, "  sum: {set: {all", "  stop: {run: test -e mended, timeout: 1m}\n  sum: {set: {all", 1)
		yaml = strings.Replace(yaml, "{from: shard, to: sum}", "{from: shard, to: stop}\n  - {from: stop, to: sum}", 1)
		yaml = strings.Replace(yaml, `"${{ output }}"`, `"${{ steps.shard.output }}"`, 1)
		want := `{"all":[{"n":1},null,{"n":3}]}`
		if !tolerant {
			yaml, want = strings.Replace(yaml, ", continue_on_error: true", "", 1), `{"all":[{"n":1},{"n":2},{"n":3}]}`
		}
		id, v := b.run(yaml, nil)
		if v.Status != protocol.Suspended {
			t.Fatalf("%s (%s)", v.Status, v.Reason)
		}
		if err := os.WriteFile(filepath.Join(b.dir, "mended"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if tolerant { // the shard is resumed on its own, which changes nothing of what was concluded
			if c := b.drive(v.Steps[2].Child); c.Status != done {
				t.Fatalf("the shard is %s (%s)", c.Status, c.Reason)
			}
		}
		if v = b.drive(id); v.Status != done || string(v.Outputs) != want {
			t.Errorf("tolerant %v: %s (%s): %s", tolerant, v.Status, v.Reason, v.Outputs)
		}
	}
}

// A shard that waits for a person is no failure: the parent waits with it.
func TestAShardThatAsksIsNoFailure(t *testing.T) {
	b := newBench(t)
	b.child("wf: 1\nname: shard\ninputs: {n: {type: integer, required: true}}\nroles: {work: {ask: Well?}}\noutputs: {n: \"${{ inputs.n }}\"}\n")
	id, v := b.run(matrixYAML, nil)
	if v.Status != protocol.Waiting || len(v.Waiting) != 3 {
		t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Waiting)
	}
	for _, w := range v.Waiting {
		if _, err := b.e.Answer(context.Background(), id, engine.Reply{Step: w.Step, Text: "yes"}); err != nil {
			t.Fatal(err)
		}
	}
	if v = b.drive(id); v.Status != done || string(v.Outputs) != `{"all":[{"n":1},{"n":2},{"n":3}]}` {
		t.Errorf("%s (%s): %s", v.Status, v.Reason, v.Outputs)
	}
}
