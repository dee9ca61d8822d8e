package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"wf/agentkit/sandbox"
	"wf/cas/castest/inmemory"
	"wf/pgstore/pgtest"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	endAtOnce()
	if programs[filepath.Base(os.Args[0])] == nil { // else it is the program that tests start
		inmemory.TempDirs()
		debug.SetGCPercent(400) // the marking of its small heap would be a third of what this process computes
	}
	testscript.Main(pgtest.Tests{M: m}, programs)
}

// programs are those that tests start by name.
var programs = map[string]func(){"wf": main}

// TestScripts runs every command as its users do.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/script"))
}

// TestSandboxScripts lie in /tmp, whose files beside a workspace a command finds closed. In shared
// memory it would not find them.
func TestSandboxScripts(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("/tmp", "wf-script-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	p := scripts("testdata/sandbox")
	p.WorkdirRoot = root
	testscript.Run(t, p)
}

func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:   dir,
		Setup: atHome,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": runExits,
			"field": runField,
			"save":  runSave,
			"flip":  runFlip,
			"await": runAwait,
			"stop":  runStop,

			"follow": runFollow,
		},
	}
}

// endAtOnce has the programs that tests start end when they are done: under the race detector
// each would wait for a second.
func endAtOnce() {
	if os.Getenv("GORACE") == "" {
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
}

// oneAfterAnother skips a test with -short, as the race detector runs it, in which commands only follow one another:
// under the detector it takes long, and scripts run the same commands.
func oneAfterAnother(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one command after another")
	}
}

// goCache is the build cache of the user of the tests.
func goCache() (string, error) {
	if cache := os.Getenv("GOCACHE"); cache != "" {
		return cache, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "go-build"), err
}

// atHome gives a script a user of its own, with the caches of this one.
func atHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	cache, err := goCache()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"HOME": home, "USER": "ada", "GOCACHE": cache, "GOPROXY": "off", "GOWORK": "off", "GORACE": os.Getenv("GORACE"),
		"XDG_DATA_HOME": "", "XDG_STATE_HOME": "", "WF_STORE": "", "NO_COLOR": "", "CLICOLOR_FORCE": "", "GITHUB_ACTIONS": "",
	} {
		env.Setenv(name, value)
	}
	return os.MkdirAll(home, 0o755)
}

// runExits runs a command and checks its exit status:  exits 2 wf run
func runExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args[1:], " "), got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// at finds a value in the JSON of a file:  steps.0.id
func at(ts *testscript.TestScript, file, path string) string {
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(file)), &v); err != nil {
		ts.Fatalf("%s is no JSON: %v\n%s", file, err, ts.ReadFile(file))
	}
	for _, key := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[key]
			if !ok {
				ts.Fatalf("%s: no %q at %q", file, key, path)
			}
			v = next
		case []any:
			if key == "len" {
				v = len(x)
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(x) {
				ts.Fatalf("%s: no element %q of %d at %q", file, key, len(x), path)
			}
			v = x[i]
		default:
			ts.Fatalf("%s: %q leads nowhere", file, path)
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	ts.Check(err)
	return string(b)
}

// runField checks a value of the JSON on stdout:  field status done
func runField(ts *testscript.TestScript, neg bool, args []string) {
	if got := at(ts, "stdout", args[0]); (got == args[1]) == neg {
		ts.Fatalf("%s is %q, want %q (negated: %v)", args[0], got, args[1], neg)
	}
}

// runSave keeps a value of the JSON on stdout in a variable:  save RUN id
func runSave(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], at(ts, "stdout", args[1]))
}

// runFlip changes one byte of a text wherever it stands in a file, or, where no text is given,
// one byte in each page behind the meta pages of a store:  flip run.car hello
func runFlip(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if len(args) == 1 {
		for i := 2*4096 + 100; i < len(b); i += 4096 {
			b[i] ^= 1
		}
		ts.Check(os.WriteFile(path, b, 0o600))
		return
	}
	changed := strings.ToUpper(args[1][:1]) + args[1][1:]
	if !strings.Contains(string(b), args[1]) || changed == args[1] {
		ts.Fatalf("%s does not hold %q, or it cannot be changed", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, []byte(strings.ReplaceAll(string(b), args[1], changed)), 0o600))
}

// runAwait waits until a file exists that a command in the background writes.
func runAwait(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("sh", "-c", fmt.Sprintf("until [ -e %q ]; do sleep 0.01; done", ts.MkAbs(args[0]))))
}

// runStop sends a signal to the process whose id stands in a file:  stop INT pid
func runStop(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}

// runFollow corrects a file as the newest error advises, and runs the command that it names:
// follow FILE CORRECTED.
func runFollow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: follow FILE CORRECTED")
	}
	advised := regexp.MustCompile(`correct \S+, then wf (.*)`).FindStringSubmatch(ts.ReadFile("stderr"))
	if advised == nil {
		ts.Fatalf("nothing is advised")
	}
	text := ts.ReadFile(args[1])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
	ts.Check(ts.Exec("sh", "-c", "wf "+advised[1]))
}
