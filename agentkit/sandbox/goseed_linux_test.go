package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

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

// A command whose result may be reused begins with what GOROOT makes below what the user has built, and no other command
// has written there.
func TestM01AReusedCommandFindsTheStandardLibraryBuilt(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		seeds := seedStage(t, s)
		if err := os.RemoveAll(filepath.Join(s.home, ".cache")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", "/usr/bin:/bin:"+filepath.Join(s.outside, "bin"))
		s.policy.Reused = true
		private := func(name string) string {
			s.policy.Private = filepath.Join(s.outside, name)
			return filepath.Join(s.policy.Private, "*", "gocache") // by trust
		}
		at := private("none")
		if got := s.works(`echo "$GOCACHE"; ls -A "$GOCACHE"`); !matches(t, at, got, "") {
			t.Error("without a seed the cache is not one of the command's own")
		}
		if sandbox.BuiltGo() {
			t.Error("the user has built nothing")
		}
		if err := sandbox.SeedTests(t.Context()); err != nil {
			t.Fatal(err)
		}
		built, err := filepath.Glob(filepath.Join(seeds, "go-*/private/gocache"))
		if err != nil || len(built) != 1 {
			t.Fatalf("built is %v (%v)", built, err)
		}
		if asked, err := os.ReadFile(filepath.Join(built[0], "asked")); err != nil || string(asked) != "test -run ^$ .\n" {
			t.Errorf("go was asked %q (%v)", asked, err)
		}
		for _, name := range []string{"one", "another"} { // neither finds what the other wrote
			at := private(name)
			if got := s.works(`echo "$GOCACHE"; cat "$GOCACHE/built" && ! test -e "$GOCACHE/evil" && ! test -e "$GOCACHE/own" && echo evil > "$GOCACHE/built" && echo evil > "$GOCACHE/own"`); !matches(t, at, got, "off local") {
				t.Errorf("the cache is %q", got)
			}
		}
		if got, err := os.ReadFile(filepath.Join(built[0], "built")); err != nil || strings.TrimSpace(string(got)) != "off local" {
			t.Errorf("the seed holds %q (%v)", got, err)
		}
		s.denied("echo evil > " + filepath.Join(built[0], "built"))

		// All of the library takes the place of a part, and lies below what the user has built.
		if err := sandbox.SeedGo(t.Context()); err != nil {
			t.Fatal(err)
		}
		private("all")
		if got := s.works(`grep -c . "$GOCACHE/asked"`); got != "4" {
			t.Errorf("go was asked for %s things", got)
		}
		s.write(filepath.Join(s.userCache(t), "mine"), "what the user built")
		if !sandbox.BuiltGo() {
			t.Error("the user has built something")
		}
		s.write(filepath.Join(s.home, ".cache/pip/mine"), "what pip built")
		private("beside")
		if got := s.works(`echo "$PIP_CACHE_DIR"`); got != "" {
			t.Errorf("pip finds %q", got)
		}
		if got := s.works(`cat "$GOCACHE/mine" "$GOCACHE/asked" "$GOCACHE/built"`); !strings.HasPrefix(got, "what the user built") || strings.Contains(got, "local") || strings.Count(got, "\n") < 4 {
			t.Errorf("beside what the user built it finds %q", got)
		}

		// No other commands find it, and none where commands could write it.
		s.policy.Reused = false
		private("plain")
		if got := s.works(`cat "$PIP_CACHE_DIR/mine"`); got != "what pip built" {
			t.Errorf("of pip another command finds %q", got)
		}
		if got := s.works(`ls -A "$GOCACHE"`); strings.Contains(got, "asked") {
			t.Errorf("another command finds %q", got)
		}
		s.policy.Reused, s.policy.Workspace = true, s.home
		if err := os.RemoveAll(filepath.Join(s.home, ".ssh")); err != nil {
			t.Fatal(err)
		}
		private("home")
		if got := s.works(`ls -A "$GOCACHE"`); strings.Contains(got, "asked") {
			t.Errorf("where the workspace holds the seed it finds %q", got)
		}
	})
}

// What needs a seed waits while another builds it, and goes on with what one that was stopped has left.
func TestASeedForTestsIsWaitedFor(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		seeds := seedStage(t, s)
		done := func() int {
			all, err := filepath.Glob(filepath.Join(seeds, "go-*", "done"))
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		// This go does not end before what it reads from is closed, which only opens when it has begun.
		ends := filepath.Join(s.outside, "bin/ends")
		if err := unix.Mkfifo(ends, 0o600); err != nil {
			t.Fatal(err)
		}
		s.write(filepath.Join(s.outside, "bin/go"), "#!/bin/sh\necho asked >> \"$GOCACHE/asked\"\nread -r line < \"${0%/go}/ends\" || :\n")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 4)
		begun := func(ctx context.Context) (letGo func() error) {
			go func() { ended <- sandbox.SeedTests(ctx) }()
			opened := make(chan *os.File)
			go func() {
				f, err := os.OpenFile(ends, os.O_WRONLY, 0)
				if err != nil {
					t.Error(err)
				}
				opened <- f
			}()
			select {
			case f := <-opened:
				return f.Close
			case err := <-ended:
				t.Fatalf("it ended before go began: %v", err)
				return nil
			}
		}
		letGo := begun(ctx)
		if stop(); <-ended == nil || done() != 0 {
			t.Error("what was stopped is taken for a seed")
		}
		if err := letGo(); err != nil {
			t.Error(err)
		}
		letGo = begun(t.Context())
		ctx, stop = context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() { waits <- sandbox.SeedTests(ctx) }()
		stop()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that was stopped says %v", err)
		}
		for range 3 {
			go func() {
				err := sandbox.SeedTests(t.Context())
				if err == nil && done() != 1 {
					err = errors.New("it did not wait")
				}
				ended <- err
			}()
		}
		if err := errors.Join(os.Remove(ends), letGo()); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		all, err := filepath.Glob(filepath.Join(seeds, "go-*/private/gocache/asked"))
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if text, err := os.ReadFile(all[0]); err != nil || string(text) != "asked\nasked\n" {
			t.Errorf("go was asked by %q (%v)", text, err)
		}
	})
}

// A test is not told from its result that the user had: that does not follow from the files alone.
func TestM01AReusedCommandTakesNoResultOfATest(t *testing.T) {
	program(t, "go")
	if testing.Short() {
		t.Skip("builds with go")
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !sandbox.Probe().Namespaces {
		t.Skip("needs layers: ", sandbox.Probe())
	}
	s := newStage(t, sandbox.Run, true)
	for name, value := range map[string]string{"GOCACHE": strings.TrimSpace(string(cache)), "GOFLAGS": "", "GOTOOLCHAIN": "local"} {
		t.Setenv(name, value)
	}
	s.write(filepath.Join(s.work, "go.mod"), "module example.com/it\n\ngo 1.24\n")
	s.write(filepath.Join(s.work, "it_test.go"), "package it\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n")
	cmd := exec.Command("go", "test", ".")
	cmd.Dir = s.work
	cmd.Env = append(os.Environ(), "GOMODCACHE="+s.outside)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for reused, want := range map[bool]bool{false: true, true: false} {
		s.policy.Reused, s.policy.Private = reused, filepath.Join(s.outside, fmt.Sprint(reused))
		if got := s.works("go test ."); strings.Contains(got, "(cached)") != want {
			t.Errorf("reused %t: %s", reused, got)
		}
	}
}

// matches reports whether the first line of a text is a path of a pattern, and the others, without spaces around them, are rest.
func matches(t *testing.T, pattern, text, rest string) bool {
	t.Helper()
	first, after, _ := strings.Cut(text, "\n")
	ok, err := filepath.Match(pattern, first)
	if err != nil {
		t.Fatal(err)
	}
	return ok && strings.TrimSpace(after) == rest
}
