package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"wf/protocol"
	"wf/service/compose"
)

// An app is one invocation of wf: its streams, and the flags that every command has.
type app struct {
	*compose.Setup

	in       io.Reader
	lines    *bufio.Reader // in, once questions are read from it
	out, err *screen

	quiet   bool
	color   string // auto, always, never
	noInput bool
	format  string     // of -o: human, json, jsonl and what a command adds
	reach   reachFlags // --hub

	every    bool // wf show --all
	started  bool // the command line was understood
	reported bool // the answer on stdout is complete, an error in JSON would be a second one
}

func newApp(in io.Reader, out, err *os.File) *app {
	return newAppOn(in, newScreen(out), newScreen(err))
}

func newAppOn(in io.Reader, out, err *screen) *app {
	a := &app{Setup: &compose.Setup{Options: compose.Options{Version: version(), Stdin: in}}, in: in, out: out, err: err, color: "auto", format: "human"}
	a.out.color, a.err.color = a.colored(a.out), a.colored(a.err) // until the flags are read
	a.Tell = func(text string) { a.progress("%s", strings.TrimRight(visible(text), "\n")) }
	return a
}

// interactive reports whether a person can be asked.
func (a *app) interactive() bool {
	f, ok := a.in.(*os.File)
	return ok && !a.noInput && a.err.tty && term.IsTerminal(int(f.Fd()))
}

func (a *app) globalFlags(f *pflag.FlagSet) {
	f.StringVar(&a.Setup.Options.Store, "store", "", "store directory (WF_STORE; else the nearest .wf upwards, else the user's)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "no progress on stderr")
	f.BoolVarP(&a.Verbose, "verbose", "v", false, "more detail")
	f.StringVar(&a.color, "color", "auto", "when to use colours: auto, always or never (NO_COLOR and CLICOLOR_FORCE are honoured)")
	f.BoolVar(&a.noInput, "no-input", false, "never ask, fail instead")
	f.StringVarP(&a.format, "output", "o", "human", "form of the answer: human, json or jsonl")
}

// start checks the global flags; from here on an error is no longer one of the command line.
func (a *app) start(cmd *cobra.Command, _ []string) error {
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return usagef("--color %q: want auto, always or never", a.color)
	}
	a.out.color, a.err.color = a.colored(a.out), a.colored(a.err)
	if formats := formatsOf(cmd); formats != nil && !slices.Contains(formats, a.format) {
		return usagef("-o %q: %s writes %s", a.format, cmd.CommandPath(), strings.Join(formats, ", "))
	}
	a.started = true
	return nil
}

// colored decides for one stream (https://no-color.org, https://bixense.com/clicolors).
func (a *app) colored(s *screen) bool {
	force := os.Getenv("CLICOLOR_FORCE")
	switch {
	case a.color != "auto":
		return a.color == "always"
	case os.Getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return s.tty
}

// formatsKey marks a command whose -o takes other values than human, json and jsonl; a
// command whose -o names a file has the empty mark.
const formatsKey = "formats"

func formatsOf(cmd *cobra.Command) []string {
	list, ok := cmd.Annotations[formatsKey]
	switch {
	case !ok:
		return []string{"human", "json", "jsonl"}
	case list == "":
		return nil
	}
	return strings.Split(list, " ")
}

// progress writes a line to stderr, unless -q.
func (a *app) progress(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// usagef is an error of the command line.
func usagef(format string, args ...any) error { return protocol.ErrUsage.With("", format, args...) }

// fail is an error with a code, what happened, and what to do.
func fail(sentinel *protocol.Error, hint, format string, args ...any) error {
	return sentinel.With(hint, format, args...)
}
