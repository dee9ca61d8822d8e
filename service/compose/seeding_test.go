package compose

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/engine/lang"
	"wf/roles"
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
			root := goHome(t, "work/"+c.module)
			p, ds := lang.Load([]byte(c.yaml), lang.Options{})
			if p == nil {
				t.Fatal(ds)
			}
			a := &Setup{}
			a.seedOnline(&config.Loaded{}, engine.Candidate{Program: p, Workspace: filepath.Join(root, "work")})
			if begun := a.library.stop != nil; begun != c.want {
				t.Fatalf("it has begun: %t", begun)
			}
			if !c.want {
				return
			}
			<-a.library.done
			a.Close()
			if built, err := filepath.Glob(filepath.Join(root, ".cache/wf/sandbox/go-*/done")); err != nil || len(built) != 1 {
				t.Errorf("built is %v (%v)", built, err)
			}
		})
	}
}

// goHome is the home directory of a user with files and a go, which writes into its cache that it has built.
func goHome(t *testing.T, names ...string) string {
	t.Helper()
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
	files := map[string]string{"bin/go": "#!/bin/sh\necho \"$*\" > \"$GOCACHE/built\"\n"}
	for _, name := range names {
		files[name] = "module it\n"
	}
	for file, content := range files {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"HOME": root, "XDG_CACHE_HOME": "", "GOCACHE": "", "PATH": root + "/bin:/usr/bin:/bin"} {
		t.Setenv(name, value)
	}
	return root
}

// The first command in a Go project whose result may be reused finds what tests need, where the user has built nothing.
func TestM01TheFirstReusedCommandInAGoProjectWaitsForGo(t *testing.T) {
	if tier := sandbox.Probe(); !tier.Namespaces {
		t.Skip("no namespaces here: ", tier)
	}
	const built, nothing = "built\n", "nothing\n"
	for name, c := range map[string]struct {
		files          []string
		sealed         bool
		want           string // that the command finds; "" is either
		begun, library bool
	}{
		"reused":                    {[]string{"work/go.mod"}, true, built, true, true},
		"not reused":                {[]string{"work/go.mod"}, false, nothing, false, false},
		"no module":                 {[]string{"work/README"}, true, nothing, false, false},
		"where go has built before": {[]string{"work/go.mod", ".cache/go-build/README"}, true, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := goHome(t, c.files...)
			a := &Setup{}
			defer a.Close()
			var said strings.Builder
			command := roles.Command{Line: `[ -e "$GOCACHE/built" ] && echo built || echo nothing`, Workspace: filepath.Join(root, "work"), Private: filepath.Join(root, "private"),
				Sealed: c.sealed, Stdout: &said}
			if code, err := (walls{a}).Run(t.Context(), command); err != nil || code != 0 {
				t.Fatal(code, err)
			}
			if said.String() != c.want && c.want != "" {
				t.Errorf("the command finds %q", &said)
			}
			if begun, library := a.tests.stop != nil, a.library.stop != nil; begun != c.begun || library != c.library {
				t.Errorf("begun: tests %t, all of the library %t", begun, library)
			}
		})
	}
}

// A command that is stopped while it waits leaves the building to those after it.
func TestM01ACommandThatIsStoppedWaitsNoMore(t *testing.T) {
	if tier := sandbox.Probe(); !tier.Namespaces {
		t.Skip("no namespaces here: ", tier)
	}
	root := goHome(t, "work/go.mod")
	if err := os.WriteFile(filepath.Join(root, "bin/go"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := &Setup{}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (walls{a}).Run(ctx, roles.Command{Line: "true", Workspace: filepath.Join(root, "work"), Private: filepath.Join(root, "private"), Sealed: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	select {
	case <-a.tests.done:
		t.Error("nothing is built any more")
	default:
	}
	a.Close()
	if built, err := filepath.Glob(filepath.Join(root, ".cache/wf/sandbox/go-*/done")); err != nil || len(built) != 0 {
		t.Errorf("what was stopped is whole: %v (%v)", built, err)
	}
}
