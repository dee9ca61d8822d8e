package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// each calls f for every command below one, and for no topic of wf help.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.Runnable() && sub.Name() != "help" || sub.HasSubCommands() {
			f(sub)
			each(sub, f)
		}
	}
}

// shellWords splits a line at spaces outside of quotes, and makes words of what joins commands.
func shellWords(line string) []string {
	var out []string
	var quote rune
	word, begun := strings.Builder{}, false
	end := func() {
		if begun {
			out, begun = append(out, word.String()), false
			word.Reset()
		}
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case strings.ContainsRune(" ()", r):
			end()
		case strings.ContainsRune("|&;<>", r):
			end()
			out = append(out, string(r))
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	end()
	return out
}

func TestShellWords(t *testing.T) {
	t.Parallel()
	got := strings.Join(shellWords(`git log | wf add "a 'b' c" -x=1 && wf init >f`), "·")
	if want := `git·log·|·wf·add·a 'b' c·-x=1·&·&·wf·init·>·f`; got != want {
		t.Errorf("have %s\nwant %s", got, want)
	}
}

// invocations are the arguments of every wf on a line of a shell.
func invocations(line string) (out [][]string) {
	words := shellWords(line)
	for i, w := range words {
		if w != "wf" {
			continue
		}
		args := words[i+1:]
		if end := slices.IndexFunc(args, func(a string) bool { return len(a) == 1 && strings.Contains("|&;<>", a) }); end >= 0 {
			args = args[:end]
		}
		out = append(out, args)
	}
	return out
}

// understood finds the command that arguments name, and parses them.
func understood(args []string) (*cobra.Command, error) {
	root := newRoot(newApp(nil, nil, nil)) // each has flags of its own
	args = latestRefs(root, args)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return nil, err
	}
	return cmd, errors.Join(cmd.ParseFlags(rest), cmd.ValidateArgs(cmd.Flags().Args()))
}

func TestEveryCommandHasExamplesThatAreCommandLines(t *testing.T) {
	t.Parallel()
	each(newRoot(newApp(nil, nil, nil)), func(documented *cobra.Command) {
		name := documented.CommandPath()
		if documented.Example == "" || documented.Short == "" {
			t.Errorf("%s --help says nothing, or has no example", name)
		}
		own := false
		for _, line := range strings.Split(documented.Example, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, args := range invocations(line) {
				cmd, err := understood(args)
				if err != nil {
					t.Errorf("%s: the example %q: %v", name, strings.TrimSpace(line), err)
					continue
				}
				own = own || cmd.CommandPath() == name || strings.HasPrefix(cmd.CommandPath(), name+" ")
			}
		}
		if !own {
			t.Errorf("%s: no example shows it", name)
		}
	})
}

// Whole command lines in the papers stand in blocks, indented or fenced; the comment behind one
// begins after two spaces.
var (
	shownLine = regexp.MustCompile(`(?m)^(?:    |\$ )?(wf [a-z].*?)(?:  .*)?$`)
	inText    = regexp.MustCompile("`(wf [a-z-][^`]*)`")
)

func TestThePapersShowCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	papers, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, paper := range append(papers, docs...) {
		text, err := os.ReadFile(paper)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownLine.FindAllStringSubmatch(string(text), -1) {
			for _, args := range invocations(m[1]) {
				if seen++; args == nil {
					continue
				}
				if _, err := understood(args); err != nil {
					t.Errorf("%s: %s: %v", paper, m[1], err)
				}
			}
		}
		for _, m := range inText.FindAllStringSubmatch(string(text), -1) {
			for _, args := range invocations(m[1]) { // a piece of a line: the arguments are missing
				seen++
				cmd, _, err := newRoot(newApp(nil, nil, nil)).Find(args)
				for _, a := range args {
					if name, _, _ := strings.Cut(strings.TrimPrefix(a, "--"), "="); err == nil && strings.HasPrefix(a, "--") && name != "help" && cmd.Flag(name) == nil {
						err = fmt.Errorf("no flag --%s", name)
					}
				}
				if err != nil {
					t.Errorf("%s: %s: %v", paper, m[1], err)
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d commands were found in the papers, want 60 or more", seen)
	}
}
