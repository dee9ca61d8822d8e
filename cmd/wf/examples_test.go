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
			home := filepath.Join(env.WorkDir, "home")
			for name, value := range map[string]string{
				"HOME": home, "USER": "ada", "GOPROXY": "off", "GOWORK": "off", "XDG_DATA_HOME": "", "XDG_STATE_HOME": "", "WF_STORE": "",
				"NO_COLOR": "", "CLICOLOR_FORCE": "", "GITHUB_ACTIONS": "",
			} {
				env.Setenv(name, value)
			}
			cache, err := os.UserCacheDir()
			if err != nil {
				return err
			}
			if env.Setenv("GOCACHE", filepath.Join(cache, "go-build")); os.Getenv("GOCACHE") != "" {
				env.Setenv("GOCACHE", os.Getenv("GOCACHE"))
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
