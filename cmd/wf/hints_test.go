package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"wf/protocol"
)

// A situation leaves a user with what wf prints: sh lines, performed one after another in a directory whose name wants quotes.
type situation struct {
	name  string
	files map[string]string
	lines []string
	least int // commands that are printed at the end
}

// flow is a workflow that the lint of timeouts finds nothing in.
func flow(name, rest string) string {
	return "wf: 1\nname: " + name + "\ndefaults: {timeout: 1m}\n" + rest
}

// situations are those in which wf says what to do next.
var situations = []situation{
	{"done", map[string]string{"w.yaml": flow("done", "roles: {a: {set: {n: 1}}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n")}, []string{"wf run w.yaml", "wf show -1"}, 3},
	{"suspended by an error", map[string]string{"it's a flow.yaml": flow("broken", "roles: {a: {run: exit 3}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n")},
		[]string{`wf run "it's a flow.yaml"`, "wf ls", "wf show -1"}, 3},
	{"failed behind a saga", map[string]string{"w.yaml": causeSaga}, []string{"wf run w.yaml", "wf show -1", "wf explain -1"}, 3},
	{"failed by an item of a fan-out", map[string]string{"w.yaml": flow("fan", `roles: {list: {set: {items: [1, 2, 3]}}, test: {run: 'test "$I" -lt 3', env: {I: "${{ item }}"}}, tidy: {set: {n: 1}}}
edges: [{from: START, to: list}, {from: list, to: test, for_each: output.items}, {from: test, to: END}, {from: test, to: tidy, on: failure}, {from: tidy, to: FAIL}]
`)}, []string{"wf run w.yaml", "wf show -1", "wf explain"}, 3},
	{"many items failed", map[string]string{"w.yaml": flow("many", `roles: {list: {set: {items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]}}, test: {run: "seq 30; exit 4", continue_on_error: true}}
edges: [{from: START, to: list}, {from: list, to: test, for_each: output.items}, {from: test, to: END}]
`)}, []string{"wf run w.yaml", "wf show -1"}, 4},
	{"an item waits", map[string]string{"w.yaml": flow("ask", `roles: {list: {set: {items: [1, 2]}}, ask: {ask: "Which of ${{ item }}?"}}
edges: [{from: START, to: list}, {from: list, to: ask, for_each: output.items}, {from: ask, to: END}]
`)}, []string{"wf run w.yaml", "wf ls", "wf show -1", "wf explain"}, 1},
	{"a choice in words", map[string]string{"w.yaml": flow("choose", `roles: {ask: {ask: "Which?", choices: ["it's #1 [of] 2", "no"]}}
edges: [{from: START, to: ask}, {from: ask, to: END}]
`)}, []string{"wf run w.yaml", "wf show -1"}, 1},
	{"a form", map[string]string{"w.yaml": flow("form", `roles: {ask: {ask: "Which?", form: {type: object, required: [who], properties: {who: {enum: ["a [b] 'c' $HOME", z]}}}}}
edges: [{from: START, to: ask}, {from: ask, to: END}]
`)}, []string{"wf run w.yaml", "wf show -1"}, 1},
	{"a signal", map[string]string{"w.yaml": flow("signal", "roles: {w: {wait: {signal: deployed}}}\nedges: [{from: START, to: w}, {from: w, to: END}]\n")}, []string{"wf run w.yaml", "wf show -1"}, 1},
	{"in the background", map[string]string{"w.yaml": flow("ask", "roles: {ask: {ask: Which?}}\nedges: [{from: START, to: ask}, {from: ask, to: END}]\n")}, []string{"wf run w.yaml --detach", "wf watch -1", "wf show -1"}, 2},
	{"a tool call to allow", map[string]string{
		"w.yaml":       flow("gate", "limits: {cost_usd: 1}\nroles: {agent: {prompt: You write., tools: [write_file: ask], model: script/replies.yaml}}\nedges: [{from: START, to: agent, prompt: go}, {from: agent, to: END}]\n"),
		"replies.yaml": "agent#1:\n  - {tools: [{tool: write_file, args: {path: out.txt, content: one}}]}\n  - {text: done}\n",
	}, []string{"wf run w.yaml", "wf show -1"}, 3},
	{"a limit of steps", map[string]string{"w.yaml": flow("limit", "limits: {steps: 2}\nroles: {a: {set: {n: 1}}}\nedges: [{from: START, to: a}, {from: a, to: a, limit: 9, when: output.n == 1}, {from: a, to: END}]\n")}, []string{"wf run w.yaml", "wf show -1"}, 1},
	{"a bound parks", map[string]string{"w.yaml": flow("bound", "roles: {a: {set: {n: 1}}}\nedges: [{from: START, to: a}, {from: a, to: a, limit: 2, when: output.n == 1}, {from: a, to: END}]\n")}, []string{"wf run w.yaml", "wf show -1"}, 1},
	{"no model answers", map[string]string{"w.yaml": flow("model", "roles: {a: {prompt: Do it., model: script/nowhere.yaml}}\nedges: [{from: START, to: a, prompt: go}, {from: a, to: END}]\n")}, []string{"wf run w.yaml"}, 0},
	{"the definition is wrong", map[string]string{"w.yaml": flow("wrong", "roles: {a: {set: {n: 1}}}\nedges: [{from: START, to: a}, {from: a, to: END, when: output.n > 5}]\n")}, []string{"wf run w.yaml", "wf show -1"}, 1},
	{"cancelled", map[string]string{"w.yaml": flow("cancel", "roles: {ask: {ask: Which?}}\nedges: [{from: START, to: ask}, {from: ask, to: END}]\n")}, []string{"wf run -q w.yaml >&- 2>&-", "wf cancel -1", "wf show -1"}, 2},
	{"in a store elsewhere", map[string]string{"w.yaml": causeSaga}, []string{"wf --store \"other [store] it's\" run w.yaml", "wf show -1 --store \"other [store] it's\"", "wf ls --store \"other [store] it's\""}, 3},
	{"a sub-workflow failed", map[string]string{"w.yaml": flow("parent", "roles: {kid: {workflow: kid.yaml}}\nedges: [{from: START, to: kid}, {from: kid, to: END}, {from: kid, to: FAIL, on: failure}]\n"), "kid.yaml": causeSaga},
		[]string{"wf run w.yaml", "wf explain -1"}, 4},
	{"a fork", map[string]string{"w.yaml": causeSaga}, []string{"wf run -q w.yaml", "wf fork '-1:car#1'", "wf show -1"}, 2},
	{"a run from elsewhere", map[string]string{"w.yaml": flow("ask", "roles: {ask: {ask: Which?}}\nedges: [{from: START, to: ask}, {from: ask, to: END}]\n")},
		[]string{"wf run -q w.yaml >&- 2>&-", "wf export -1 -o 'a run.car'", "wf import --store there 'a run.car'", "wf show -1 --store there", "wf ls --store there", "wf answer --store there -1 x"}, 2},
	{"words that are wrong", map[string]string{"a flow.yaml": flow("inputs", "inputs: {x: {type: integer, default: 2}}\nroles: {a: {set: {n: 1}}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n")}, []string{`wf run "a flow.yaml" x=1`, "wf show nothere", "wf show -1:x#1", "wf run nothere.yaml"}, 1},
	{"inputs that are wrong", map[string]string{"a flow.yaml": flow("inputs", "inputs: {n: {type: integer}}\nroles: {a: {set: {n: 1}}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n")}, []string{`wf run "a flow.yaml" -i n=x`, `wf run "a flow.yaml"`}, 2},
	{"begun here", nil, []string{"wf init 'a new [one]'"}, 1},
	{"no files are kept there", map[string]string{"w.yaml": causeSaga}, []string{"wf run -q w.yaml", "wf files '-1:car#1' nothere", "wf explain '-1:car#7'"}, 1},
}

const causeSaga = `wf: 1
name: saga
defaults: {timeout: 1m}
roles: {hotel: {set: {n: 1}}, car: {run: "seq 30; exit 3"}, undo: {set: {n: 1}}}
edges:
  - {from: START, to: hotel}
  - {from: hotel, to: car}
  - {from: car, to: END}
  - {from: car, to: undo, on: failure}
  - {from: undo, to: FAIL, prompt: All is undone.}
`

// proseWord begins what is said behind a command.
var proseWord = regexp.MustCompile(`^(tells|shows|goes|lists|has|passes|with|on|and|follows|does|ends|names|lets|or|before|checks|begins|starts|writes|makes)$`)

// printedCommands are the command lines of wf with a word at least behind the name that a text says, without what is said of them.
func printedCommands(root *cobra.Command, text string) (out []string) {
	words := regexp.MustCompile(`(?:'[^']*'|\\.|"[^"]*"|[^\s'"\\])+`)
	for line := range strings.Lines(text) {
		at := words.FindAllString(line, -1)
		for i := 0; i < len(at); i++ {
			if strings.TrimLeft(at[i], "(") != "wf" {
				continue
			}
			cmd := []string{"wf"}
			if i > 2 && at[i-1] == "&&" {
				cmd = slices.Concat(at[i-3:i], cmd) // cd DIR &&
			}
			name := len(cmd)
			for i++; i < len(at) && at[i] != "·" && at[i] != "&&" && !proseWord.MatchString(at[i]); i++ {
				w := strings.TrimRight(at[i], ",;:)")
				if cmd = append(cmd, w); w != at[i] {
					break
				}
			}
			if i < len(at) && at[i] == "wf" {
				i--
			}
			known, rest, err := root.Find(cmd[name:])
			if err == nil && known != root && len(rest) > 0 && !slices.Contains(out, strings.Join(cmd, " ")) {
				out = append(out, strings.Join(cmd, " "))
			}
		}
	}
	return out
}

// zshReads reports whether zsh, with any options, reads a line as the words that sh does: patterns and the like stand in quotes.
func zshReads(line string) bool {
	line = strings.ReplaceAll(line, " && ", " ")
	bare := regexp.MustCompile(`'[^']*'|\\'|"[^"$\\`+"`"+`!]*"`).ReplaceAllString(line, "")
	return !strings.ContainsAny(bare, "[]#^~*?{}()<>|&;$!'\"\\`") && !regexp.MustCompile(`(^| )=`).MatchString(bare)
}

// accepted are the exit statuses of a command that was understood: also of a run that failed, waits or reached a limit.
var accepted = []int{0, 1, 4, 6, 8}

// F207: each command that wf prints works when it is pasted, in sh, and in zsh where that is installed.
func TestF207WhatIsPrintedWorksWhenPasted(t *testing.T) {
	oneAfterAnother(t)
	shells := [][]string{{"sh", "-c"}}
	if zsh, err := exec.LookPath("zsh"); err == nil {
		shells = append(shells, []string{zsh, "-fc", `setopt extendedglob interactivecomments; eval "$0"`})
	}
	root := newRoot(newApp(strings.NewReader(""), os.Stdout, os.Stderr))
	for _, x := range situations {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "it's a [place] of #1")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range x.files {
				write(t, dir, name, text)
			}
			var said strings.Builder
			for _, line := range x.lines {
				out, _ := pasted(t, top, dir, []string{"sh", "-c"}, line)
				said.WriteString(out)
			}
			// What a reason says was recorded before the limit was known that it is raised to.
			lines := printedCommands(root, strings.ReplaceAll(said.String(), "; raise it with wf resume --limit steps=…", ""))
			if len(lines) < x.least {
				t.Errorf("%d commands are printed, want %d:\n%s\n%s", len(lines), x.least, strings.Join(lines, "\n"), said.String())
			}
			kept := filepath.Join(t.TempDir(), "kept")
			if err := os.CopyFS(kept, os.DirFS(top)); err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if !zshReads(line) {
					t.Errorf("zsh reads it in another way: %s", line)
				}
				for _, shell := range shells {
					out, exit := pasted(t, top, dir, shell, line)
					if !slices.Contains(accepted, exit) {
						t.Errorf("%s\nexit %d: %s", line, exit, out)
					}
					if err := errors.Join(os.RemoveAll(top), os.CopyFS(top, os.DirFS(kept))); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// pasted performs a line in a shell, as the user of a directory.
func pasted(t *testing.T, home, dir string, shell []string, line string) (string, int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if strings.HasPrefix(line, "wf log ") {
		line = strings.TrimSuffix(line, " -f") // else it follows a run that goes on
	}
	cmd := exec.CommandContext(ctx, shell[0], append(slices.Clone(shell[1:]), line)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "USER=ada", "WF_STORE=", "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=", "WF_HUB=", "COLUMNS=500")
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatalf("%s: %v", line, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// F207: the quotes of a word are those that shells need.
func TestF207AWordIsQuotedForEveryShell(t *testing.T) {
	for word, want := range map[string]string{
		"7K3Q8F2M1A": "7K3Q8F2M1A", "R:coder#2": "'R:coder#2'", "R:test#1[3]": "'R:test#1[3]'", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "=ls": "'=ls'", "a=b": "a=b",
		"~/x": "'~/x'", "x^y": "'x^y'", "$HOME": "'$HOME'", "!!": "'!!'", "a\"b": `'a"b'`, "src/app.go": "src/app.go", "{a,b}": "'{a,b}'", "*": "'*'", "…": "…",
	} {
		if got := protocol.ShellWord(word); got != want || !zshReads("wf "+got) {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
		out, err := exec.Command("sh", "-c", "printf %s "+protocol.ShellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("sh reads %q as %q, %v", word, out, err)
		}
	}
}

// F207: what the help of each command gives as examples is read as real arguments are: the flags are known, and the names of runs and
// steps are such as the command takes.
func TestF207TheExamplesOfHelpAreRead(t *testing.T) {
	h := newHouse(t)
	h.open(t)
	named := regexp.MustCompile(`\b(7K3[QR]|9F2M)\b`)
	loop := ""
	for id, name := range h.mask.names {
		if name == "RUN_LOOP__" {
			loop = id
		}
	}
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			for _, args := range exampleWords(line) {
				if err := exampleIsRead(named, loop, args); err != nil {
					t.Errorf("wf %s --help: wf %s: %v", commandName(cmd), strings.Join(args, " "), err)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(newRoot(newApp(strings.NewReader(""), os.Stdout, os.Stderr)))
}

// exampleWords are the words of each command of wf on a line of an example.
func exampleWords(line string) (out [][]string) {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return nil
	}
	for _, part := range regexp.MustCompile(`(?:^\s*|\| |&& |<\()wf ((?:'[^']*'|"[^"]*"|[^|&>;)'"])*)`).FindAllStringSubmatch(line, -1) {
		part[1], _, _ = strings.Cut(part[1], " < ")
		var words []string
		for _, w := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(part[1], -1) {
			words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(w))
		}
		out = append(out, words)
	}
	return out
}

// shown are the commands that read a run or step alone: they are performed on one that is there.
var shown = []string{"artifact", "cache", "cost", "diff", "explain", "files", "log", "messages", "show", "task", "trace", "verify", "blame", "hook", "ls"}

// exampleIsRead parses the words as wf does, and has those that name runs and steps found, as the commands find them.
func exampleIsRead(named *regexp.Regexp, run string, words []string) error {
	a := newApp(strings.NewReader(""), os.Stdout, os.Stderr)
	root := newRoot(a)
	cmd, rest, err := root.Find(latestRefs(root, words))
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if cmd.Args != nil {
		if err := cmd.Args(cmd, args); err != nil {
			return err
		}
	}
	if cmd.PreRunE != nil {
		if err := cmd.PreRunE(cmd, args); err != nil {
			return err
		}
	}
	if slices.Contains([]string{"watch", "run"}, words[0]) || !slices.Contains(shown, words[0]) || slices.Contains(words, "-f") || strings.Contains(strings.Join(words, " "), "…") {
		return nil
	}
	for i := range words {
		words[i] = named.ReplaceAllString(words[i], run)
		words[i] = regexp.MustCompile(`^-[12](:|$)`).ReplaceAllString(words[i], run+"$1")
	}
	if p := wfMain(words...); p.exit == statusOf(usagef("")) && strings.Contains(p.stderr, "--help shows how") {
		return fmt.Errorf("%s", p.stderr)
	}
	return nil
}
