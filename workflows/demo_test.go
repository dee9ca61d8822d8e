package workflows_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit"
	"wf/agentkit/prompt"
	"wf/api"
	"wf/cas"
	"wf/cas/castest/inmemory"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
	"wf/workflows"
)

func TestMain(m *testing.M) {
	inmemory.TempDirs()
	os.Exit(m.Run())
}

// newEngine is an engine over a new store, with every performer.
func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	s, err := cas.Open(context.Background(), filepath.Join(t.TempDir(), ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &engine.Engine{Store: s, Version: "test", Performers: map[protocol.Action]roles.Performer{
		protocol.ActPrompt: agentkit.Agent{}, protocol.ActRun: &roles.Run{Messages: prompt.Within, Walls: roles.Bare{Name: "a test"}},
		protocol.ActAsk: roles.Ask{}, protocol.ActWait: roles.Wait{}, protocol.ActSet: roles.Set{},
	}}
}

// repair writes the demo, runs it to its end, and gives what became of it.
func repair(t *testing.T) (dir string, e *engine.Engine, v *api.Run) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go in the PATH")
	}
	dir, e = t.TempDir(), newEngine(t)
	if err := workflows.WriteDemo(dir, lang.JSONSchema()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, filepath.FromSlash(workflows.DemoWorkflow))
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, diags := lang.Load(src, lang.Options{File: file})
	if p == nil {
		t.Fatal(diags)
	}
	inputs, err := p.Inputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	run, _, err := e.Begin(ctx, engine.Launch{Program: p, Source: src, Inputs: inputs, Workspace: dir, File: file})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Drive(ctx, run, engine.DriveOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if v, err = e.View(ctx, run); err != nil {
		t.Fatal(err)
	}
	return dir, e, v
}

// goTest is what go test says of the module, without any workflow.
func goTest(t *testing.T, dir string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", "test", "-count=1", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// rebuilt renders the first request of a visit.
func rebuilt(t protocol.Turn) ([]byte, protocol.Link, error) {
	messages, err := prompt.Rebuild(t)
	if err != nil {
		return nil, protocol.Link{}, err
	}
	return prompt.Bytes(t.History.Tools, messages), prompt.Digest(t.History.Tools, messages), nil
}

func TestTheDemoRepairsAFailingModule(t *testing.T) {
	t.Parallel()
	before := t.TempDir()
	if err := workflows.WriteDemo(before, lang.JSONSchema()); err != nil {
		t.Fatal(err)
	}
	if out, err := goTest(t, before); err == nil || !strings.Contains(out, "--- FAIL: TestSharesAddUp") {
		t.Fatalf("the tests are not red to begin with: %v\n%s", err, out)
	}

	dir, e, v := repair(t)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	if out, err := goTest(t, dir); err != nil {
		t.Fatalf("the tests are not green in the end: %v\n%s", err, out)
	}
	for _, name := range []string{"split_test.go", "go.mod"} {
		was, err := os.ReadFile(filepath.Join(before, name))
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(was, is) {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}

	var path []string
	exits := map[string]string{}
	byID := map[string]*api.Step{}
	for _, s := range v.Steps {
		path, byID[s.ID] = append(path, s.ID+" "+s.Status), s
		if s.Role == "test" {
			exits[s.ID] = string(s.Output)
		}
	}
	if d := cmp.Diff([]string{"test#1 ok", "coder#1 ok", "test#2 ok", "coder#2 ok", "test#3 ok", "reviewer#1 ok"}, path); d != "" {
		t.Fatalf("steps (-want +have):\n%s", d)
	}
	for id, want := range map[string]string{"test#1": `"exit_code":1`, "test#2": `"exit_code":1`, "test#3": `"exit_code":0`} {
		if !strings.Contains(exits[id], want) {
			t.Errorf("%s: %s, want %s", id, exits[id], want)
		}
	}
	first, second := byID["coder#1"], byID["coder#2"]
	if second.Visit != 2 || second.Resumes == nil || *second.Resumes != *first.CID {
		t.Errorf("coder#2 is visit %d and resumes %v, want visit 2 and %s", second.Visit, second.Resumes, *first.CID)
	}
	if !strings.Contains(second.EdgePrompt, "TestSharesAreFair") {
		t.Errorf("coder#2 was not told what fails: %s", second.EdgePrompt)
	}

	report, err := e.Check(context.Background(), v.ID, rebuilt)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || report.Prompts.Checked != 3 || report.Prefixes.Checked != 1 {
		t.Errorf("checked again: %+v", report)
	}
}

func TestTheDemoConcludesTheSameInEveryDirectoryAndStore(t *testing.T) {
	t.Parallel()
	_, _, one := repair(t)
	_, _, two := repair(t)
	if one.ID == two.ID || one.Result == nil || two.Result == nil || *one.Result != *two.Result {
		t.Errorf("runs %s and %s: results %v and %v, want two runs with one result", one.ID, two.ID, one.Result, two.Result)
	}
}

func TestTheDemoReplacesNoFile(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "split.go")
	if err := os.WriteFile(mine, []byte("package mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := workflows.WriteDemo(dir, lang.JSONSchema()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("have %v, want an error wrapping fs.ErrExist", err)
	}
	if b, err := os.ReadFile(mine); err != nil || string(b) != "package mine\n" {
		t.Errorf("the file is now %q (%v)", b, err)
	}
}
