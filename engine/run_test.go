package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// inDir is the store of an engine that has one in a directory.
func inDir(e *engine.Engine) *cas.Store { return e.Store.(*cas.Store) }

// bench is a store with an engine over the performers that need no model.
type bench struct {
	t   testing.TB
	dir string
	e   *engine.Engine
	cut func() // ends the connections of its database
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.open()
	return b
}

func (b *bench) open() {
	b.t.Helper()
	s, err := cas.Open(context.Background(), filepath.Join(b.dir, ".wf"), cas.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	b.e = &engine.Engine{Store: s, Version: "test", Performers: map[protocol.Action]roles.Performer{
		protocol.ActRun: &roles.Run{Walls: roles.Bare{Name: "a test"}}, protocol.ActAsk: roles.Ask{}, protocol.ActWait: roles.Wait{}, protocol.ActSet: roles.Set{},
	}}
}

func (b *bench) load(yaml string) *lang.Program {
	b.t.Helper()
	p, diags := lang.Load([]byte(yaml), lang.Options{File: "test.yaml", Read: func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(b.dir, name))
	}})
	if p == nil {
		lang.Render(os.Stderr, []byte(yaml), diags, false)
		b.t.Fatal("the workflow is not valid")
	}
	return p
}

// run starts a workflow and drives it until it stops.
func (b *bench) run(yaml string, inputs map[string]any) (protocol.RunID, *api.Run) {
	b.t.Helper()
	p := b.load(yaml)
	raw, err := p.Inputs(inputs)
	if err != nil {
		b.t.Fatal(err)
	}
	id, _, err := b.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: raw, Workspace: b.dir})
	if err != nil {
		b.t.Fatal(err)
	}
	return id, b.drive(id)
}

func (b *bench) drive(id protocol.RunID) *api.Run {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{By: "test"}); err != nil {
		b.t.Fatal(err)
	}
	return b.view(id)
}

func (b *bench) view(id protocol.RunID) *api.Run {
	b.t.Helper()
	v, err := b.e.View(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// steps are the ids of the steps with their status.
func steps(v *api.Run) []string {
	var out []string
	for _, s := range v.Steps {
		out = append(out, s.ID+" "+s.Status)
	}
	return out
}

const loopYAML = `
wf: 1
name: loop
roles:
  a: {set: {n: "${{ (steps.b?.output.n ?? 0) + 1 }}"}}
  b: {set: {n: "${{ output.n + 1 }}"}}
edges:
  - {from: START, to: a}
  - {from: a, to: b}
  - {from: b, to: END, when: output.n >= 10}
  - {from: b, to: a, limit: 100, prompt: "again ${{ output.n }} (${{ edge.visit }})"}
outputs: {n: "${{ steps.b?.output.n }}"}
`

func TestALoopOfValuesRunsToItsEnd(t *testing.T) {
	b := newBench(t)
	_, v := b.run(loopYAML, nil)
	if v.Status != protocol.Done || string(v.Outputs) != `{"n":10}` {
		t.Fatalf("%s (%s), outputs %s, steps %v", v.Status, v.Reason, v.Outputs, steps(v))
	}
	if len(v.Steps) != 10 {
		t.Fatalf("steps: %v", steps(v))
	}
	last := v.Steps[8]
	if last.ID != "a#5" || last.Visit != 5 || last.EdgePrompt != "again 8 (4)" || last.Resumes == nil {
		t.Fatalf("%+v", last)
	}
}
