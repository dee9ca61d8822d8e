package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/cmd/internal/ask"
	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/protocol"
	"wf/service/compose"
)

// An app is one invocation of wf: its streams, and the flags that every command has.
type app struct {
	*compose.Setup
	*render.Printer

	in      io.Reader
	person  *ask.Terminal
	noInput bool
	reach   daemon.Remote // --hub
	worker  string        // --worker: id of that one of a hub whose memories are meant
	started bool          // the command line was understood
}

func newApp(in io.Reader, out, err *os.File) *app {
	return newAppOn(in, render.NewScreen(out), render.NewScreen(err))
}

func newAppOn(in io.Reader, out, err *render.Screen) *app {
	a := &app{Setup: &compose.Setup{Options: compose.Options{Version: version(), Stdin: in}}, Printer: render.New(out, err), in: in}
	a.person = &ask.Terminal{Printer: a.Printer, In: in}
	a.Tell = func(text string) { a.Progress("%s", strings.TrimRight(render.Visible(text), "\n")) }
	return a
}

// interactive reports whether a person can be asked.
func (a *app) interactive() bool {
	f, ok := a.in.(*os.File)
	return ok && !a.noInput && a.Err.TTY && term.IsTerminal(f.Fd())
}

// confirm asks a person at the terminal. It is refused where the answer is no, or there is no person.
func (a *app) confirm(ctx context.Context, question string, refused error) error {
	if !a.interactive() {
		return refused
	}
	agreed, err := a.person.Confirm(ctx, question)
	if err == nil && !agreed {
		return refused
	}
	return err
}

func (a *app) globalFlags(f *pflag.FlagSet) {
	f.StringVar(&a.Setup.Options.Store, "store", "", "store directory (WF_STORE; else the nearest .wf upwards, else the user's)")
	f.BoolVarP(&a.Quiet, "quiet", "q", false, "no progress on stderr")
	f.BoolVarP(&a.Verbose, "verbose", "v", false, "more detail")
	f.StringVar(&a.Color, "color", "auto", "when to use colours: auto, always or never (NO_COLOR and CLICOLOR_FORCE are honoured)")
	f.BoolVar(&a.noInput, "no-input", false, "never ask, fail instead")
	f.StringVarP(&a.Format, "output", "o", "human", "form of the answer: human, json or jsonl")
}

// start checks the global flags; from here on an error is no longer one of the command line.
func (a *app) start(cmd *cobra.Command, _ []string) error {
	if !slices.Contains([]string{"auto", "always", "never"}, a.Color) {
		return usagef("--color %q: want auto, always or never", a.Color)
	}
	a.UseColors()
	a.Options.Verbose = a.Verbose
	if formats := formatsOf(cmd); formats != nil && !slices.Contains(formats, a.Format) {
		return usagef("-o %q: %s writes %s", a.Format, cmd.CommandPath(), strings.Join(formats, ", "))
	}
	has, err := protocol.ParseHas(os.Getenv("WF_HAS"))
	if err != nil {
		return usagef("WF_HAS: %v", err)
	}
	a.Has = has
	a.Through = a.through(cmd.Root())
	a.started = true
	return nil
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

// usagef is an error of the command line.
func usagef(format string, args ...any) error { return protocol.ErrUsage.With("", format, args...) }
