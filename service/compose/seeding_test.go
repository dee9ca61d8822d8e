package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/engine/lang"
)

// The standard library of Go is built for runs that have a use for it, and for no others.
func TestARunThatReachesANetworkInAGoProjectHasGoBuilt(t *testing.T) {
	if tier := sandbox.Probe(); !tier.Namespaces {
		t.Skip("no namespaces here: ", tier)
	}
	const online, confined = "wf: 1\nname: a\nroles: {one: {run: ls, sandbox: on, network: allow}}\n", confinedOne
	for name, c := range map[string]struct {
		yaml, module string
		want         bool
	}{
		"a network and a module": {online, "go.mod", true},
		"a list and a workspace": {strings.Replace(online, "allow", "packages", 1), "go.work", true},
		"no network":             {confined, "go.mod", false},
		"no module":              {online, "README", false},
		"not confined":           {strings.Replace(online, "sandbox: on, ", "", 1), "go.mod", false},
	} {
		t.Run(name, func(t *testing.T) {
			// Not below /tmp, of which commands have their own.
			root, err := os.MkdirTemp("/var/tmp", "wf-seeding-")
			if err != nil {
				t.Skip("no /var/tmp: ", err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(root); err != nil {
					t.Error(err)
				}
			})
			for file, content := range map[string]string{"work/" + c.module: "module it\n", "bin/go": "#!/bin/sh\necho built > \"$GOCACHE/built\"\n"} {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("HOME", root)
			t.Setenv("XDG_CACHE_HOME", "")
			t.Setenv("PATH", root+"/bin:/usr/bin:/bin")
			p, ds := lang.Load([]byte(c.yaml), lang.Options{})
			if p == nil {
				t.Fatal(ds)
			}
			a := &Setup{}
			a.seeding.start(a, &config.Loaded{}, engine.Candidate{Program: p, Workspace: filepath.Join(root, "work")})
			if begun := a.seeding.stop != nil; begun != c.want {
				t.Fatalf("it has begun: %t", begun)
			}
			if !c.want {
				return
			}
			<-a.seeding.done
			a.Close()
			if built, err := filepath.Glob(filepath.Join(root, ".cache/wf/sandbox/go-*/done")); err != nil || len(built) != 1 {
				t.Errorf("built is %v (%v)", built, err)
			}
		})
	}
}
