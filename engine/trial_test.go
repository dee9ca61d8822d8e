package engine_test

import (
	"context"
	"testing"

	"wf/engine"
	"wf/protocol"
)

// M-3: trials of a sweep take no results of each other or of the run that they fork, and each its own; records do not tell
// them apart.
func TestM03TrialsTakeNoResultsOfEachOther(t *testing.T) {
	m := newMemos(t)
	m.counting()
	m.write("src/a", "one")
	yaml := role(building, "{inputs: [src/**], outputs: [dist/**]}")
	run := m.start(yaml, "")
	v := m.drive(run)
	ctx := context.Background()
	results := map[string]bool{string(*v.Result): true}
	for _, x := range []struct{ request, trial, want string }{
		{"a", "s/1", "differs trial"}, {"b", "s/2", "differs trial"}, {"c", "s/2", "reused"}, {"d", "", "reused"},
	} {
		fork := must(m.e.Fork(ctx, run, engine.ForkOptions{At: before(t, m.bench, run, "build#1"), RequestID: x.request, Trial: x.trial, Tags: []string{"sweep", x.request}}))(t)
		f := m.drive(fork)
		if have := how(f); have != x.want {
			t.Errorf("trial %q: %s, want %s", x.trial, have, x.want)
		}
		if len(f.Info.Tags) != 2 || f.Info.Tags[1] != x.request {
			t.Errorf("tags %v", f.Info.Tags)
		}
		results[string(*f.Result)] = true
		if again := must(m.e.Fork(ctx, run, engine.ForkOptions{At: 1, RequestID: x.request}))(t); again != fork {
			t.Errorf("the same request made %s and %s", fork, again)
		}
	}
	if len(results) != 1 {
		t.Errorf("the trial number is in %d records", len(results))
	}
	begin := func(trial string) string {
		p := m.load(yaml)
		id, _, err := m.e.Begin(ctx, engine.Launch{Program: p, Source: []byte(yaml), Inputs: protocol.JSON("{}"), Workspace: m.dir, Trial: trial})
		if err != nil {
			t.Fatal(err)
		}
		return how(m.drive(id))
	}
	if have := begin("t/1"); have != "differs trial" {
		t.Errorf("a new run of another trial: %s", have)
	}
	if have := begin("t/1"); have != "reused" {
		t.Errorf("a new run of the same trial: %s", have)
	}
}

// M-3: a fork of a fork has the origin of the first run, and a sub-workflow that of the run that the origin begins.
func TestM03ForksHaveTheOriginOfTheFirstRun(t *testing.T) {
	b := newBench(t)
	run, v := b.run(loopYAML, nil)
	ctx := context.Background()
	first := must(b.e.Fork(ctx, run, engine.ForkOptions{At: v.Seq - 2}))(t)
	second := must(b.e.Fork(ctx, first, engine.ForkOptions{At: v.Seq - 2}))(t)
	for _, fork := range []protocol.RunID{first, second} {
		if s := must(b.e.State(ctx, fork))(t); s.Info.Origin != run {
			t.Errorf("fork %s has the origin %q, want %s", fork, s.Info.Origin, run)
		}
	}
}

// before is the event before a step began.
func before(t *testing.T, b *bench, run protocol.RunID, step string) protocol.Seq {
	t.Helper()
	for x, err := range b.e.Store.After(context.Background(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if x.StepName() == step && x.Type == protocol.EvStepStarted {
			return x.Seq - 1
		}
	}
	t.Fatalf("run %s has no step %s", run, step)
	return 0
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// M-3: what tells a trial apart, and under whose name it asks providers, holds in its sub-workflows too: these ask under the name of
// the one that the origin has.
func TestM03SubWorkflowsOfATrial(t *testing.T) {
	m := newMemos(t)
	m.counting()
	m.write("src/a", "one")
	m.write("child.yaml", role(building, "{inputs: [src/**], outputs: [dist/**]}"))
	run := m.start("wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\n", "")
	if v := m.drive(run); v.Status != protocol.Done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	children := func() map[protocol.RunID]bool {
		out := map[protocol.RunID]bool{}
		for _, h := range must(m.e.Store.Heads(context.Background(), "run/"))(t) {
			id := protocol.RunOf(h.Name)
			if s := must(m.e.State(context.Background(), id))(t); s.Info.Parent != nil {
				out[id] = true
			}
		}
		return out
	}
	first := children()
	if len(first) != 1 {
		t.Fatalf("%d sub-workflows", len(first))
	}
	var origin protocol.RunID
	for id := range first {
		origin = id
	}
	fork := must(m.e.Fork(context.Background(), run, engine.ForkOptions{At: before(t, m.bench, run, "sub#1"), Trial: "s/1"}))(t)
	if v := m.drive(fork); v.Status != protocol.Done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	for id := range children() {
		if first[id] {
			continue
		}
		s := must(m.e.State(context.Background(), id))(t)
		if s.Info.Trial != "s/1" || s.Info.Origin != origin || how(m.view(id)) != "differs trial" {
			t.Errorf("trial %q, origin %q, want %q; %s", s.Info.Trial, s.Info.Origin, origin, how(m.view(id)))
		}
		return
	}
	t.Error("the trial has no sub-workflow of its own")
}
