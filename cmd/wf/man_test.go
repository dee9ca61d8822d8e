package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"wf/cmd/internal/help"

	"github.com/spf13/cobra"
)

func allManPages() map[string]string {
	return help.Manual{Version: version(), Date: "2026-01-31", Exits: exits}.Pages(newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)))

}

// bold and italic are names of options as pages write them.
func bold(name string) string   { return `\fB` + strings.ReplaceAll(name, "-", `\-`) + `\fR` }
func italic(name string) string { return `\fI` + strings.ReplaceAll(name, "-", `\-`) + `\fR` }

func TestEveryCommandHasAPageOfTheManual(t *testing.T) {
	t.Parallel()
	pages := allManPages()
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	count := 1
	each(root, func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		count++
		page, found := pages[help.Title(cmd)+".1"]
		if !found {
			t.Errorf("%s has no page", cmd.CommandPath())
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"} {
			_, behind, found := strings.Cut(page, "\n.SH \""+section+"\"\n")
			if content, _, _ := strings.Cut(behind, "\n.SH "); !found || strings.TrimSpace(content) == "" {
				t.Errorf("the page of %s says nothing under %s", cmd.CommandPath(), section)
			}
		}
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && !strings.Contains(page, bold(help.Title(sub))+"(1)") {
				t.Errorf("the page of %s leads to no page of %s", cmd.CommandPath(), sub.CommandPath())
			}
		}
	})
	if count != len(pages) || count < 40 {
		t.Errorf("%d pages for %d commands", len(pages), count)
	}
}

func TestAPageOfTheManualHasEachOptionOnce(t *testing.T) {
	t.Parallel()
	pages := allManPages()
	for name, options := range map[string][]string{
		"wf.1":          {"store", "hub", "quiet", "verbose", "color", "no-input", "output", "help"},
		"wf-run.1":      {"input", "detach", "output", "help"},
		"wf-cas-show.1": {"output", "help"},
	} {
		for _, option := range options {
			if n := strings.Count(pages[name], ".TP\n"+bold("--"+option)) + strings.Count(pages[name], ", "+bold("--"+option)+" "+italic(strings.ToUpper(option))+"\n") +
				strings.Count(pages[name], ", "+bold("--"+option)+"\n"); n != 1 {
				t.Errorf("%s has --%s %d times", name, option, n)
			}
		}
	}
	if page := pages["wf-run.1"]; strings.Contains(page, bold("--color")) {
		t.Error("wf-run.1 repeats an option of every command")
	}
}

// The formatters that are there show the pages without a warning.
func TestThePagesOfTheManualAreShown(t *testing.T) {
	t.Parallel()
	formatters := map[string][]string{"groff": {"-man", "-Tutf8", "-wall", "-ww"}, "mandoc": {"-T", "utf8", "-W", "warning"}}
	tried := 0
	for program, args := range formatters {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("%s is not installed", program)
			continue
		}
		for name, page := range allManPages() {
			cmd := exec.Command(path, args...)
			cmd.Stdin = strings.NewReader(page)
			var said strings.Builder
			cmd.Stderr = &said
			shown, err := cmd.Output()
			if err != nil || said.Len() > 0 || !strings.Contains(string(shown), "wf") {
				t.Errorf("%s with %s: %v\n%s", name, program, err, said.String())
			}
		}
		tried++
	}
	if tried == 0 {
		t.Skip("no formatter of manuals is installed")
	}
}
