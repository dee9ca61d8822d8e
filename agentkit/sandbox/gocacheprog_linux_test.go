package sandbox_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// go itself finds what is in the lower directory, writes into the upper one alone, and finds that again.
func TestGoWorksWithTheCacheOfItsSeed(t *testing.T) {
	program(t, "go")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Without an import nothing of the standard library is built.
	work := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module it\n\ngo 1.24\n", "it.go": "package it\n\nfunc Twice(n int) int { return 2 * n }\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compiles := func(lower, upper string) bool {
		t.Helper()
		cmd := exec.Command("go", "build", "-x", ".")
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GOCACHE="+t.TempDir(), "GOFLAGS=", "GOTOOLCHAIN=local", "GOCACHEPROG="+sandbox.CacheProgram(self, lower, upper))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), "/compile ")
	}
	files := func(dir string) int {
		all, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	none, first, second := t.TempDir(), filepath.Join(t.TempDir(), "it's first"), t.TempDir()
	if !compiles(none, first) {
		t.Error("nothing was compiled at first")
	}
	had := files(first)
	if compiles(none, first) || compiles(first, second) {
		t.Error("what was in a cache was compiled")
	}
	if files(none) != 0 || files(first) != had || had == 0 {
		t.Errorf("%d files in the empty lower directory, %d of %d in the other", files(none), files(first), had)
	}
}

// What go does not ask for so is answered too.
func TestTheCacheAnswersEachRequest(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lower, upper := t.TempDir(), t.TempDir()
	action, text := sha256.Sum256([]byte("action")), "an output"
	output := sha256.Sum256([]byte(text))
	b64 := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	ask := func(requests ...string) []map[string]any {
		t.Helper()
		cmd := exec.Command(self, "wf:gocache", lower, upper)
		cmd.Stdin = strings.NewReader(strings.Join(requests, "\n"))
		said, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var out []map[string]any
		for lines := bufio.NewScanner(strings.NewReader(string(said))); lines.Scan(); {
			var r map[string]any
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out[1:] // the first one names the commands
	}
	get := fmt.Sprintf(`{"ID":1,"Command":"get","ActionID":%q}`, b64(action[:]))
	put := fmt.Sprintf(`{"ID":2,"Command":"put","ActionID":%q,"OutputID":%q,"BodySize":%d}`+"\n%q", b64(action[:]), b64(output[:]), len(text), b64([]byte(text)))
	got := ask(get, put, get, `{"ID":3,"Command":"get"}`, `{"ID":4,"Command":"fetch","ActionID":"AA=="}`, `{"ID":5,"Command":"close"}`)
	if len(got) != 6 || got[0]["Miss"] != true || got[1]["Err"] != nil || got[2]["Miss"] != nil || got[2]["Size"] != float64(len(text)) ||
		got[3]["Err"] == nil || got[4]["Err"] == nil || got[5]["Err"] != nil {
		t.Fatalf("it said %v", got)
	}
	path, _ := got[2]["DiskPath"].(string)
	if kept, err := os.ReadFile(path); err != nil || string(kept) != text || filepath.Dir(filepath.Dir(path)) != upper {
		t.Errorf("%s holds %q (%v)", path, kept, err)
	}
	// An output that was cut off is none.
	if err := os.WriteFile(path, []byte("an out"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(get); got[0]["Miss"] != true {
		t.Errorf("of what was cut off it said %v", got)
	}
}

// Without mounts the seed is found by a program within the same walls.
func TestACommandWithoutNamespacesFindsTheStandardLibraryBuilt(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		seeds := seedStage(t, s)
		if err := sandbox.SeedGo(t.Context()); err != nil {
			t.Fatal(err)
		}
		built, err := filepath.Glob(filepath.Join(seeds, "go-*/private/gocache/built"))
		if err != nil || len(built) != 1 {
			t.Fatalf("built is %v (%v)", built, err)
		}
		s.run, s.namespaces = sandbox.RunWithoutNamespaces, false
		if got := s.works(`echo "$GOCACHEPROG"`); got != "" {
			t.Errorf("without a network there is %s", got)
		}
		s.policy.Network = true
		if got := s.works(`echo '{"ID":1,"Command":"close"}' | eval "$GOCACHEPROG"`); !strings.Contains(got, `"KnownCommands":["get","put","close"]`) {
			t.Errorf("it said %s", got)
		}
		if got := s.works(`echo "$GOCACHEPROG"`); !strings.HasSuffix(got, " wf:gocache "+filepath.Dir(built[0])+" "+s.works(`echo "$GOCACHE"`)) {
			t.Errorf("GOCACHEPROG is %s", got)
		}
		program := s.works(`echo "${GOCACHEPROG% *}"`) // the cache that it writes is that of its trust
		s.policy.Network, s.policy.Reused = false, true
		if got := s.works(`echo "${GOCACHEPROG% *}"`); got != program {
			t.Errorf("with a result that may be reused GOCACHEPROG is %s, not %s", got, program)
		}
		s.works("cat " + built[0])
		s.denied("echo evil > " + built[0])
		s.denied("rm " + built[0])
	})
}
