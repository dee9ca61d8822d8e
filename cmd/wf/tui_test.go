package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/files/filestest"
	"wf/protocol"
)

// The keys of wf tui on the runs of a store: a form, resume, fork, cancel and delete, on a terminal that is resized.
func TestAWalkThroughTheBrowserOfRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "join.yaml", askForm)
	write(t, dir, "flaky.yaml", "wf: 1\nname: flaky\nroles:\n  look: {run: 'printf \"\\033]0;owned\\007 世界\\n\"; test -e mended', timeout: 1m}\n")
	write(t, dir, "slow.yaml", "wf: 1\nname: slow\nroles:\n  nap: {wait: {for: 1h}}\n")
	begin := func(file string) protocol.RunID {
		t.Helper()
		cmd := exec.Command("wf", "run", file, "-q", "--no-input", "-o", "json")
		cmd.Dir, cmd.Env = dir, consoleEnv(dir)
		out, _ := cmd.Output() // it does not end well, on purpose
		var v api.Run
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, out)
		}
		return v.ID
	}
	slow, flaky, join := begin("slow.yaml"), begin("flaky.yaml"), begin("join.yaml")

	p := atTerminal(t, dir, "wf", "tui")
	only := func(text string) { // shows the runs that hold a text
		t.Helper()
		p.press("/" + text)
		p.onScreen(`Runs with "` + text + `" (1 of`)
		p.press("\r")
		p.onScreen("? keys")
	}
	all := func(n int) {
		t.Helper()
		p.press("\x1b")
		p.onScreen(fmt.Sprintf("Runs (%d)", n))
	}
	p.onScreen("Runs (3)")
	only("join")
	p.onScreen("⏸ Who are you?")
	p.onScreen("a fills in zip, name, age, size, tea, motto")
	p.press("a")
	p.onScreen("zip  string, required  (1 of 6)")
	p.press("01234\rA\r")
	p.onScreen("name: minLength: got 1, want 2")
	p.press("da\r\r")
	p.onScreen("1  small")
	p.press("\x1b[B\x1b[B") // ↓ goes through the choices
	p.onScreen("> large")
	p.press("\r\r\r")
	p.onScreen("answered who#1")
	p.onScreen("Steps of join · done")
	all(3)

	only("flaky")
	p.onScreen("世界")
	p.onScreen("Steps of flaky · suspended")
	p.press("R")
	p.onScreen("run " + string(flaky) + " goes on")
	p.onScreen("Steps of flaky · suspended")
	write(t, dir, "mended", "")
	p.press("R")
	p.onScreen("Steps of flaky · done")
	p.press("F")
	p.onScreen("Fork run " + string(flaky) + " at look#1?")
	p.press("y")
	p.onScreen("is a fork of " + string(flaky) + " at look#1")
	p.onScreen("Runs (4)")

	only("slow")
	p.onScreen("Steps of slow · waiting")
	p.press("D")
	p.onScreen("has not ended") // the whole refusal, with what to do
	p.onScreen("fix: ")
	p.press("\x1b")
	p.onScreen("Steps of slow")
	p.onScreen("! shows all")
	p.press("X")
	p.onScreen("Cancel run " + string(slow) + "?")
	p.press("n")
	p.onScreen("nothing was done")
	p.press("X")
	p.onScreen("Cancel run " + string(slow) + "?")
	p.press("y")
	p.onScreen("Steps of slow · cancelled")
	p.press("D")
	p.onScreen("y deletes " + string(slow))
	p.press("y")
	p.onScreen("run " + string(slow) + " was deleted")
	all(3)

	from := len(p.all())
	if err := pty.Setsize(p.pty, &pty.Winsize{Rows: 12, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	p.press("?")
	p.until("a small screen", func() bool { return strings.Contains(p.screenOf(from, 40, 12), "╭─ Keys ──") })
	p.press("Gx1")
	p.until("a list", func() bool { return strings.Contains(p.screenOf(from, 40, 12), "1 Runs (3)") })
	p.press("q")
	if got := p.ends(); got != 0 {
		t.Errorf("exit %d:\n%s", got, p.screen())
	}
	if d := cmp.Diff(p.found, p.left); d != "" {
		t.Errorf("the terminal has other settings than before:\n%s", d)
	}
	if strings.Contains(p.all(), "\x1b]0;owned") || strings.Contains(p.all(), "\x1b[31m") {
		t.Error("what a command wrote acts on the terminal, or it is coloured in spite of NO_COLOR")
	}
	if out, err := wfIn(dir, "ls").CombinedOutput(); err != nil || strings.Contains(string(out), string(slow)) || strings.Count(string(out), "✓ done") != 3 || !strings.Contains(string(out), string(join)) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// What goes on in the browser of runs is suspended when it is left, and loses nothing.
func TestLeavingTheBrowserSuspendsWhatGoesOnInIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "long.yaml", "wf: 1\nname: long\nroles:\n  look: {run: 'test -e once || { touch once; exit 1; }; touch began; until test -e go; do sleep 0.01; done', timeout: 1m}\n")
	if out, err := wfIn(dir, "run", "long.yaml", "-q").CombinedOutput(); err == nil {
		t.Fatalf("it has not failed:\n%s", out)
	}
	p := atTerminal(t, dir, "wf", "tui")
	p.onScreen("Steps of long · suspended")
	p.press("R")
	p.onScreen("Steps of long · running")
	if err := filestest.Await(t.Context(), dir, func() bool { _, err := os.Stat(filepath.Join(dir, "began")); return err == nil }); err != nil {
		t.Fatal(err)
	}
	p.press("q")
	if got := p.ends(); got != 0 {
		t.Errorf("exit %d:\n%s", got, p.screen())
	}
	if out, err := wfIn(dir, "ls").CombinedOutput(); err != nil || !strings.Contains(string(out), "! suspended") {
		t.Errorf("%v:\n%s", err, out)
	}
	write(t, dir, "go", "")
	if out, err := wfIn(dir, "resume", "-1").CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
