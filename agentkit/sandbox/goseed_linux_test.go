package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wf/agentkit/sandbox"
)

// seedStage is a stage whose go is a script that says what it was asked, and writes into its cache.
func seedStage(t *testing.T, s stage) (seeds string) {
	t.Helper()
	if !s.namespaces {
		t.Skip("needs layers")
	}
	bin := filepath.Join(s.outside, "bin")
	s.write(filepath.Join(bin, "go"), `#!/bin/sh
[ ! -e "${0%/go}/fails" ] || exit 7
echo "$*" >> "$GOCACHE/asked"
echo "$GOFLAGS $GOPROXY $GOTOOLCHAIN $GOROOT" > "$GOCACHE/built"
`)
	for _, name := range []string{"sh", "nice", "grep"} { // as an agent could have put them there
		s.write(filepath.Join(bin, name), "#!/bin/sh\necho evil > \"$GOCACHE/evil\"\nexec /usr/bin/"+name+" \"$@\"\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(bin, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("GOROOT", s.outside)
	t.Setenv("GOFLAGS", "-toolexec=/evil")
	s.write(filepath.Join(s.userCache(t), "mine"), "what the user built")
	return filepath.Join(s.home, ".cache/wf/sandbox")
}

// A command with a network begins with what GOROOT makes, and with nothing of the user.
func TestACommandWithANetworkFindsTheStandardLibraryBuilt(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		seeds := seedStage(t, s)
		s.policy.Network = true
		t.Setenv("PATH", "/usr/bin:/bin:"+filepath.Join(s.outside, "bin"))
		if got := s.works(`ls "$GOCACHE"`); got != "" {
			t.Errorf("before there is a seed the cache holds %q", got)
		}
		t.Setenv("PATH", filepath.Join(s.outside, "bin")+":/usr/bin:/bin")
		if err := sandbox.SeedGo(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", "/usr/bin:/bin:"+filepath.Join(s.outside, "bin"))
		if got := s.works(`test ! -e "$GOCACHE/evil" && cat "$GOCACHE/built" && ! test -e "$GOCACHE/mine" && echo evil > "$GOCACHE/built" && echo own > "$GOCACHE/own"`); strings.TrimSpace(got) != "off local" {
			t.Errorf("the cache was built with %q", got)
		}
		if got := s.works(`cat "$GOCACHE/built" "$GOCACHE/own"`); got != "evil\nown" {
			t.Errorf("the next command of the workspace finds %q", got)
		}
		s.policy.Private = filepath.Join(s.outside, "another")
		if got := s.works(`cat "$GOCACHE/built"; ls "$GOCACHE"`); !strings.HasPrefix(got, " off local \n") || strings.Contains(got, "own") {
			t.Errorf("another workspace finds %q", got)
		}
		s.policy.Network = false
		if got := s.works(`cat "$GOCACHE/mine"`); got != "what the user built" {
			t.Errorf("a command without a network finds %q", got)
		}
		all, err := filepath.Glob(filepath.Join(seeds, "go-*", "done"))
		if err != nil || len(all) != 1 {
			t.Errorf("the seeds are %v (%v)", all, err)
		}
	})
}

// Two that begin at once build it once, and a build that failed is no seed.
func TestASeedIsBuiltOnceAndWhole(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		seeds := seedStage(t, s)
		glob := func(name string) string {
			all, err := filepath.Glob(filepath.Join(seeds, "go-*", name))
			if err != nil || len(all) > 1 {
				t.Fatalf("the seeds are %v (%v)", all, err)
			}
			return strings.Join(all, "")
		}
		s.write(filepath.Join(s.outside, "bin/fails"), "")
		if err := sandbox.SeedGo(t.Context()); err == nil || !strings.Contains(err.Error(), "exit 7") {
			t.Errorf("a build that fails says %v", err)
		}
		if glob("done") != "" {
			t.Error("what failed is taken for a seed")
		}
		if err := os.Remove(filepath.Join(s.outside, "bin/fails")); err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if err := sandbox.SeedGo(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		asked, err := os.ReadFile(glob("private/gocache/asked"))
		if err != nil || strings.Count(string(asked), "build std") != 1 {
			t.Errorf("go was asked\n%s (%v)", asked, err)
		}
		if glob("done") == "" {
			t.Error("there is no seed")
		}
	})
}
