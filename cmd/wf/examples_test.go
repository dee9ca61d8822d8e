package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestExamples runs the workflows of the directory workflows, as their comments say.
func TestExamples(t *testing.T) {
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
