package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cmd/internal/render"
)

var update = flag.Bool("update", false, "write the goldens of the commands, and the screen of wf demo in README.md, anew")

const readme = "../../README.md"

// readmeDemo is the block of the README that shows wf demo on a terminal of readmeWidth columns.
var readmeDemo = regexp.MustCompile("(?s)(<!-- demo -->\n```\n)(.*?)(```\n)")

const readmeWidth = 100

// A terminal keeps what is written to it, as the person in front of it sees it in the end. It
// knows the one movement that the live screen makes: up n lines and wipe from there.
type terminal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (x *terminal) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.Write(p)
}

var wiped = regexp.MustCompile("\x1b\\[([0-9]+)A\r\x1b\\[J")

func (x *terminal) text(t *testing.T) string {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	rest, seen := x.out.String(), ""
	for {
		at := wiped.FindStringSubmatchIndex(rest)
		if at == nil {
			seen += rest
			break
		}
		seen += rest[:at[0]]
		up, err := strconv.Atoi(rest[at[2]:at[3]])
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(seen, "\n") // the last is the empty one after the cursor
		if up >= len(lines) {
			t.Fatalf("the screen goes up %d lines, and there are %d", up, len(lines)-1)
		}
		seen = strings.Join(lines[:len(lines)-1-up], "")
		rest = rest[at[1]:]
	}
	if strings.Contains(seen, "\x1b") {
		t.Fatalf("the screen makes a movement that this test does not know: %q", seen)
	}
	return seen
}

// demoScreen runs wf demo on a terminal.
func demoScreen(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	x := &terminal{}
	on := func(w io.Writer) *render.Screen { return &render.Screen{Writer: w, TTY: true, Width: readmeWidth} }
	a := newAppOn(strings.NewReader(""), on(x), on(x))
	a.Color, a.Options.Store = "never", filepath.Join(home, ".wf")
	a.Out.Color, a.Err.Color = false, false
	dir := filepath.Join(home, "wf-demo")
	if err := a.demo(context.Background(), dir, true); err != nil {
		t.Fatalf("%v\n%s", err, x.text(t))
	}
	return "$ go run ./cmd/wf demo\n" + strings.ReplaceAll(x.text(t), dir, "/tmp/wf-demo")
}

var (
	runWord   = regexp.MustCompile(`\brun ([0-9A-Z]{10})\b`)
	duration  = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(ms|s)\b`)
	counted   = regexp.MustCompile(`\b(in|cached|out) [0-9]+`)
	shortCIDs = regexp.MustCompile(`\b[a-z2-7]{8}\b`)
	spaces    = regexp.MustCompile(` +`)
	columns   = regexp.MustCompile(` {2,}`)
)

// still is a screen without what differs from run to run, or with every change of a tool's
// description: times, tokens, names, and how much of the last column finds room.
func still(text string) string {
	if m := runWord.FindStringSubmatch(text); m != nil {
		text = strings.ReplaceAll(text, m[1], "RUN")
	}
	var out []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if cells := columns.Split(line, -1); strings.HasSuffix(line, "…") {
			cells[len(cells)-1] = string([]rune(cells[len(cells)-1] + strings.Repeat(" ", 20))[:20])
			line = strings.Join(cells, "  ")
		}
		line = counted.ReplaceAllString(line, "$1 N")
		line = shortCIDs.ReplaceAllString(duration.ReplaceAllString(line, "TIME"), "CID")
		out = append(out, strings.TrimRight(spaces.ReplaceAllString(line, " "), " …"))
	}
	return strings.Join(out, "\n")
}

func TestReadmeDemoIsTheRealScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go test")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go here")
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	block := readmeDemo.FindSubmatchIndex(text)
	if block == nil {
		t.Fatal("README.md has no block after <!-- demo -->")
	}
	screen := demoScreen(t)
	if *update {
		text = append(append(bytes.Clone(text[:block[4]]), screen...), text[block[5]:]...)
		if err := os.WriteFile(readme, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(still(string(text[block[4]:block[5]])), still(screen)); d != "" {
		t.Errorf("the screen in README.md is not that of wf demo (-README +screen); write it anew with make update:\n%s", d)
	}
}
