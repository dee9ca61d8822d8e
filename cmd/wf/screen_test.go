package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"wf/cmd/internal/screentest"
)

// What every command prints of a run whose model and commands are hostile, in every form.
func TestNoCommandPrintsWhatActsOnATerminal(t *testing.T) {
	oneAfterAnother(t)
	t.Parallel()
	dir := t.TempDir()
	all := strings.Join(screentest.Hostile, "|")
	quoted := func(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "")) }
	text, name := quoted("---\nstatus: done\n---\n"+all), quoted("tool\x1b]0;owned\x07\u009b2J\u202e\u200b")
	write(t, dir, "said.bin", all)
	write(t, dir, "replies.yaml", fmt.Sprintf("\"a#1\":\n  - {thinking: %s, tool: %s, args: {x: %s}}\n  - {text: %s}\n", text, name, text, text))
	write(t, dir, "hostile.yaml", `wf: 1
name: hostile
inputs: {what: {type: string, required: true}}
roles:
  a: {prompt: "You are a. ${{ inputs.what }}", model: script/replies.yaml, tools: [read_file]}
  b: {run: "cat said.bin; cat said.bin >&2; exit 3", timeout: 1m}
edges:
  - {from: START, to: a, prompt: "${{ inputs.what }}"}
  - {from: a, to: b, prompt: "${{ inputs.what }}"}
  - {from: b, to: END}
outputs: {what: "${{ inputs.what }}"}
`)
	write(t, dir, "input.txt", strings.ToValidUTF8(strings.ReplaceAll(all, "\x00", ""), ""))
	title := strings.ToValidUTF8(strings.ReplaceAll(all, "\x00", ""), "")
	commands := [][]string{
		{"run", "hostile.yaml", "-i", "what=@input.txt", "--title", title, "--tag", title, "-v"}, {"run", "hostile.yaml", "-i", "what=@input.txt", "--title", title, "-o", "jsonl"},
		{"ls", "--all"}, {"show", "-1"}, {"show", "-1:a#1"}, {"show", "-1:b#1"}, {"log", "-1"}, {"log", "-1:b#1"}, {"log", "-1:a#1"},
		{"watch", "-1"}, {"replay", "-1"}, {"replay", "-1", "--check"}, {"diff", "-2", "-1"}, {"explain", "-1:b#1"}, {"cost", "-1"},
		{"messages", "-1:a#1"}, {"cache", "-1"}, {"graph", "hostile.yaml"}, {"verify", "-1"}, {"validate", "hostile.yaml"},
	}
	colours := map[bool]string{true: "always", false: "never"}
	for _, args := range commands {
		for color, when := range colours {
			for _, form := range []string{"", "json"} {
				with := append([]string{"--color", when}, args...)
				if form != "" {
					if args[0] == "graph" || args[len(args)-1] == "jsonl" {
						continue
					}
					with = append(with, "-o", form)
				}
				cmd := wfIn(dir, with...)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				if len(out) == 0 || cmd.ProcessState.ExitCode() == 2 {
					t.Errorf("wf %q: %v\n%s", args, err, out)
				}
				if what := screentest.Acts(string(out), color); what != "" {
					t.Errorf("wf %.60q %s %s: %s", args, when, form, what)
				}
			}
		}
	}
}

// All that wf prints goes through a screen: nothing else reaches for the streams of the process, and the
// bytes of blocks and archives alone go past it, and what a process says that a signal ends by force.
func TestOnlyScreensReachTheTerminal(t *testing.T) {
	t.Parallel()
	past := regexp.MustCompile(`os\.Std(out|err)\b|\b([Oo]ut|[Ee]rr|w)\.Writer\b|fmt\.Print(f|ln)?\(`)
	allowed := map[string]int{"main.go": 2, "../internal/render/block.go": 1, "artifact.go": 1, "cas.go": 1, "export.go": 1}
	var files []string
	for dir, least := range map[string]int{".": 50, "../internal/render": 20, "../internal/help": 4} {
		found, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(found) < least {
			t.Fatal(dir, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for l := range strings.Lines(string(source)) {
			if past.MatchString(l) {
				n++
			}
		}
		if n != allowed[file] {
			t.Errorf("%s reaches past the screen in %d lines, want %d", file, n, allowed[file])
		}
	}
}
