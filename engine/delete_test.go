package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// parentOf is a workflow that calls gateYAML, in the directory of the bench.
func parentOf(b *bench) string {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(gateYAML), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return "wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\noutputs: {said: \"${{ steps.sub.output.said }}\"}\n"
}

func TestSubRunsAreDeletedWithTheirRootAndNeverAlone(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id, v := b.run(parentOf(b), nil)
	if v.Status != protocol.Waiting {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	children, err := b.e.Descendants(ctx, id)
	if err != nil || len(children) != 1 {
		t.Fatalf("%v, %v", children, err)
	}
	child := children[0]
	for _, run := range []protocol.RunID{id, child} {
		if _, _, err := b.e.Delete(ctx, run, engine.Burial{}); !errors.Is(err, protocol.ErrNotFinal) {
			t.Errorf("run %s waits: %v", run, err)
		}
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "yes", Text: "fine"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	if _, _, err := b.e.Delete(ctx, child, engine.Burial{}); !errors.Is(err, protocol.ErrUsage) || protocol.HintOf(err) != "delete "+string(id) {
		t.Errorf("a sub-run alone: %v", err)
	}
	for _, run := range []protocol.RunID{id, child} { // driven by another process
		claim, err := b.e.Store.Claim(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		for _, dry := range []bool{true, false} {
			if _, _, err := b.e.Delete(ctx, id, engine.Burial{DryRun: dry}); !errors.Is(err, protocol.ErrRunLive) {
				t.Errorf("while run %s is driven: %v", run, err)
			}
		}
		if err := claim.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: 1})
	if err != nil {
		t.Fatal(err)
	}
	runs, _, err := b.e.Delete(ctx, id, engine.Burial{By: "ada", Why: "old"})
	if err != nil || !slices.Equal(runs, []protocol.RunID{id, child}) {
		t.Fatalf("%v, %v", runs, err)
	}
	for _, run := range runs {
		if _, _, err := b.e.Store.Tip(ctx, run); !errors.Is(err, protocol.ErrRunDeleted) || !strings.Contains(err.Error(), "by ada: old") {
			t.Errorf("run %s: %v", run, err)
		}
		if _, err := os.Lstat(filepath.Join(b.e.Store.Dir(), "runs", string(run)+".lock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the lock of run %s: %v", run, err)
		}
	}
	if v := b.view(fork); v.Status.Final() {
		t.Errorf("the fork is %s", v.Status)
	}
	if r, err := cas.Verify(ctx, inDir(b.e), cas.VerifyOptions{All: true}); err != nil || !r.OK {
		t.Errorf("%v, %v", r.Findings, err)
	}
}

// A fork shares visits of sub-workflows that belong to the run it was forked from: these stay.
func TestADeletedForkLeavesTheSubRunsOfItsBase(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id, _ := b.run(parentOf(b), nil)
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "yes", Text: "fine"}); err != nil {
		t.Fatal(err)
	}
	v := b.drive(id)
	fork, err := b.e.Fork(ctx, id, engine.ForkOptions{At: v.Seq - 1})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.drive(fork); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	runs, _, err := b.e.Delete(ctx, fork, engine.Burial{})
	if err != nil || !slices.Equal(runs, []protocol.RunID{fork}) {
		t.Fatalf("%v, %v", runs, err)
	}
	if all, err := b.e.Descendants(ctx, id); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
