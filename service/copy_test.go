package service

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

const asksBelow = `
wf: 1
name: parent
roles:
  sub: {workflow: child.yaml}
  thinks: {prompt: "Think.", memory: {scope: workflow}}
edges:
  - {from: START, to: sub}
  - {from: sub, to: thinks, when: "output.text == 'think'"}
  - {from: sub, to: END}
  - {from: thinks, to: END}
outputs: {said: "${{ steps.sub.output.text }}"}
`

// A run that waits in a sub-workflow goes on in another store, and its end comes back.
func TestCopyOfARunWithASubWorkflow(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	store := func(name string) (*cas.Store, *engine.Engine) {
		s, err := cas.Open(ctx, filepath.Join(dir, name), cas.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		e := &engine.Engine{Store: s, Pins: cas.NewPins(s, filepath.Join(dir, "state")), Performers: map[protocol.Action]roles.Performer{protocol.ActAsk: roles.Ask{}}}
		e.Performers[protocol.ActWorkflow] = e.SubWorkflow()
		return s, e
	}
	if err := os.WriteFile(filepath.Join(dir, "child.yaml"), []byte("wf: 1\nname: child\nroles: {gate: {ask: \"Go on?\"}}\noutputs: {text: \"${{ steps.gate.output.text }}\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, found := lang.Load([]byte(asksBelow), lang.Options{File: filepath.Join(dir, "parent.yaml"), Read: os.ReadFile})
	if program == nil {
		t.Fatal(found)
	}
	inputs, err := program.Inputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	here, e := store("here")
	run, _, err := e.Begin(ctx, engine.Launch{Program: program, Source: []byte(asksBelow), Inputs: inputs, Workspace: dir, File: filepath.Join(dir, "parent.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	drive := func(e *engine.Engine, want protocol.RunStatus) {
		t.Helper()
		if _, err := e.Drive(ctx, run, engine.DriveOptions{}); err != nil {
			t.Fatal(err)
		}
		if v, err := e.View(ctx, run); err != nil || v.Status != want {
			t.Fatalf("%v, want %s; %v", v, want, err)
		}
	}
	drive(e, protocol.Waiting)
	memory, err := cas.OpenMemory(here, "workflow/parent")
	if err == nil {
		_, err = memory.Append(ctx, 1, cas.EventRef{}, []cas.Draft{{Data: protocol.Remembered{Content: protocol.NewText("a thing"), Tags: []string{}}}})
	}
	if err != nil {
		t.Fatal(err)
	}

	there, f := store("there")
	got, err := Copy(ctx, here, there, CopyOptions{Runs: []protocol.RunID{run}, Pins: f.Pins})
	if err != nil || len(got.Runs) != 2 || got.Runs[0] != run || !slices.Equal(got.Memories, []string{"workflow/parent"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := f.Drive(ctx, run, engine.DriveOptions{}); !errors.Is(err, protocol.ErrForeign) {
		t.Errorf("before it was adopted: %v", err)
	}
	heads, err := there.Heads(ctx, protocol.RunHead(""))
	if err == nil {
		err = f.Pins.Adopt(ctx, heads)
	}
	if err == nil {
		_, err = f.Answer(ctx, run, engine.Reply{Text: "fine"})
	}
	if err != nil {
		t.Fatal(err)
	}
	drive(f, protocol.Done)

	claim, err := here.Claim(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	got, err = Copy(ctx, there, here, CopyOptions{Pins: e.Pins})
	if !errors.Is(err, protocol.ErrRunLive) || !slices.Equal(got.Faulty, []protocol.RunID{run}) || len(got.Forwarded) != 1 {
		t.Errorf("while it is driven here: %+v, %v", got, err)
	}
	// Driven at the source it comes all the same, up to what is durable.
	if got, err = Copy(ctx, here, there, CopyOptions{}); err != nil || !slices.Equal(got.Ahead, []protocol.RunID{run}) {
		t.Errorf("the other way: %+v, %v", got, err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err = Copy(ctx, there, here, CopyOptions{Pins: e.Pins}); err != nil || !slices.Equal(got.Forwarded, []protocol.RunID{run}) || got.Same != 1 {
		t.Errorf("back: %+v, %v", got, err)
	}
	if v, err := e.View(ctx, run); err != nil || string(v.Outputs) != `{"said":"fine"}` {
		t.Errorf("%+v, %v", v, err)
	}
	if err := e.Own(ctx, run); !errors.Is(err, protocol.ErrForeign) {
		t.Errorf("it went on elsewhere: %v", err)
	}
	for _, s := range []*cas.Store{here, there} {
		if r, err := cas.Verify(ctx, s, cas.VerifyOptions{}); err != nil || !r.OK {
			t.Errorf("%v, %v", r.Findings, err)
		}
	}
}
