package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// each calls f for every command below one.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" && sub.Name() != "exit-codes" {
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
	got := strings.Join(shellWords(`git log | wf add "a 'b' c" -x=1 && wf init >f`), "·")
	if want := `git·log·|·wf·add·a 'b' c·-x=1·&·&·wf·init·>·f`; got != want {
		t.Errorf("have %s\nwant %s", got, want)
	}
}

func TestEveryCommandHasExamplesThatAreCommandLines(t *testing.T) {
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
			words := shellWords(line)
			for i, w := range words {
				if w != "wf" {
					continue
				}
				args := words[i+1:]
				for k, a := range args {
					if strings.ContainsAny(a, "|&;<>") && len(a) == 1 {
						args = args[:k]
						break
					}
				}
				root := newRoot(newApp(nil, nil, nil)) // parsing sets flags
				args = latestRefs(root, args)
				cmd, rest, err := root.Find(args)
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
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

func TestTheUsageLineSaysWhatCompletes(t *testing.T) {
	for _, c := range []struct {
		use  string
		n    int
		want string
	}{
		{"ls", 0, ""},
		{"cancel RUN", 0, "RUN"},
		{"cancel RUN", 1, ""},
		{"answer RUN|RUN:STEP [TEXT]", 0, "RUN RUN:STEP"},
		{"answer RUN|RUN:STEP [TEXT]", 1, "TEXT"},
		{"show [RUN[:STEP] | CID]", 0, "RUN[:STEP] CID"},
		{"diff RUN RUN", 1, "RUN"},
		{"validate FILE...", 7, "FILE"},
		{"tag ID [TAG...]", 5, "TAG"},
	} {
		if got := strings.Join(kindsOf(&cobra.Command{Use: c.use}, c.n), " "); got != c.want {
			t.Errorf("argument %d of %q: %q, want %q", c.n, c.use, got, c.want)
		}
	}
}
