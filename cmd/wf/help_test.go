package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/cmd/internal/help"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
)

// On a terminal of any width, every page has all commands and flags, and what it says in sentences fits.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	check := func(cmd *cobra.Command) {
		asTyped := cmd.UseLine() + "\n" + cmd.Example // these lines are never broken
		for _, sub := range cmd.Commands() {
			asTyped += "\n" + sub.Use
		}
		for line := range strings.Lines(cmd.Long) {
			if strings.HasPrefix(line, " ") {
				asTyped += "\n" + line
			}
		}
		for _, columns := range []int{30, 60, 80, 100, 200} {
			command := cmd.CommandPath() + " --help"
			got := wfOn(&render.Screen{TTY: true, Width: columns}, strings.Fields(command + " --color never")[1:]...)
			if got.exit != 0 || got.stderr != "" {
				t.Fatalf("%s: %s", command, got)
			}
			for line := range strings.Lines(got.stdout) {
				line = strings.TrimSuffix(line, "\n")
				typed := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(line), " [--flags]"), " [command]")
				if plain.Width(line) > min(columns, help.Columns) && !strings.Contains(asTyped, typed) || strings.HasSuffix(line, " ") {
					t.Errorf("%s at %d columns: this line is too wide or ends with blanks: %q", command, columns, line)
				}
			}
			for _, sub := range cmd.Commands() {
				if has := strings.Contains(got.stdout, "\n    "+sub.Use); has == sub.Hidden {
					t.Errorf("%s at %d columns: %s is shown: %v, hidden: %v", command, columns, sub.Name(), has, sub.Hidden)
				}
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				has := strings.Contains(got.stdout, " --"+f.Name+"\n") || strings.Contains(got.stdout, " --"+f.Name+"  ")
				if has == f.Hidden {
					t.Errorf("%s at %d columns: --%s is shown: %v, hidden: %v", command, columns, f.Name, has, f.Hidden)
				}
			})
		}
	}
	check(root)
	each(root, check)
}

// Help is coloured as everything else is, though it ends a command before the global flags are checked.
func TestHelpIsColouredWhereColoursAreWanted(t *testing.T) {
	t.Setenv("CLICOLOR_FORCE", "")
	for _, c := range []struct {
		command, noColor string
		tty, colours     bool
	}{
		{command: "--help", tty: true, colours: true},
		{command: "run --help", tty: true, colours: true},
		{command: "help run", tty: true, colours: true},
		{command: "run --help"},
		{command: "run --help", tty: true, noColor: "1"},
		{command: "run --help --color never", tty: true},
		{command: "run --help --color always", noColor: "1", colours: true},
		{command: "help run --color always", colours: true},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		got := wfOn(&render.Screen{TTY: c.tty, Width: 80}, strings.Fields(c.command)...)
		heading, flag := "\n  USAGE\n", "\n    -h --help"
		if c.colours {
			heading, flag = "\n  \x1b[1mUSAGE\x1b[0m\n", "\n    \x1b[36m-h --help\x1b[0m"
		}
		if !strings.Contains(got.stdout, heading) || !strings.Contains(got.stdout, flag) || strings.Contains(got.stdout, "\x1b") != c.colours {
			t.Errorf("wf %s (%+v):\n%q", c.command, c, got.stdout)
		}
	}
}
