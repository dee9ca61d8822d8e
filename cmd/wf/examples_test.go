package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestExamples runs the workflows of the directory workflows, as their comments say.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../workflows")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/examples",
		Setup: func(env *testscript.Env) error {
			if err := atHome(env); err != nil {
				return err
			}
			// The scripts name the examples as their own comments do.
			return os.Symlink(examples, filepath.Join(env.WorkDir, "workflows"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": runExits,
			"field": runField,
			"save":  runSave,
		},
	})
}

// TestEveryWorkflowOfTheCookbookIsRun looks for the script that runs each.
func TestEveryWorkflowOfTheCookbookIsRun(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../workflows/cookbook/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/examples/cookbook_*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, ".replies.yaml") {
			if !strings.Contains(all.String(), "--model script/"+name) {
				t.Errorf("no script of the tests answers from %s", name)
			}
		} else if !strings.Contains(all.String(), "exec wf run workflows/cookbook/"+name) && !strings.Contains(all.String(), "exits 8 wf run workflows/cookbook/"+name) {
			t.Errorf("no script of the tests runs %s", name)
		}
	}
	if len(files) < 15 || len(scripts) < 10 {
		t.Errorf("%d files and %d scripts were found", len(files), len(scripts))
	}
}
