// Command wf runs workflows of LLM roles, commands and people that are written in YAML.
//
//	flags ─► app ─► store, definition ─► engine, agentkit ─► render │ JSON ─► exit status
//
// This package is wiring: one file per command, one table from error codes to exit statuses
// (exit.go), one place where commands find runs, steps and blocks (target.go). What is printed is
// made by package render, help pages by package help.
//
// # The law of the terminal
//
// stdout is the answer, stderr is progress. Colour and live screens are decided for each
// stream on its own: NO_COLOR, CLICOLOR_FORCE and --color are honoured. Nothing destructive
// happens without --yes or a confirmation on a terminal. A finished command exits 0 only
// when what it says is on disk.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"wf/agentkit/sandbox"
	"wf/cmd/internal/help"
	"wf/protocol"
)

func main() {
	sandbox.Main()
	os.Exit(Main(os.Args[1:]))
}

// Main runs one command line and gives the exit status.
func Main(args []string) int {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	root := newRoot(a)
	root.SetArgs(latestRefs(root, args))

	ctx, stop := withSignals(context.Background())
	defer stop()
	err := execute(ctx, root)
	if err != nil && !a.started {
		err = usage(err)
	}
	var sig signalled
	if errors.As(context.Cause(ctx), &sig) && !errors.As(err, new(interrupted)) &&
		(errors.Is(err, context.Canceled) || errors.As(err, new(signalled))) {
		err = silent{sig} // who pressed Ctrl-C knows; a run that was suspended by it says so
	}
	return a.finish(err)
}

// execute runs the command that was asked for. Its error is shown by finish.
func execute(ctx context.Context, root *cobra.Command) error {
	root.SilenceUsage, root.SilenceErrors, root.Version = true, true, version()
	return root.ExecuteContext(ctx)
}

// usage marks an error of the command line, which cobra reports without a code.
func usage(err error) error {
	if protocol.CodeOf(err) != "" {
		return err
	}
	e := *protocol.ErrUsage
	e.Message = err.Error()
	return &e
}

// A signalled error says which signal ended the command.
type signalled struct{ sig syscall.Signal }

func (s signalled) Error() string { return "interrupted by " + unix.SignalName(s.sig) }

// stopMost is how long a command goes on behind its signal: the five seconds that what it started has to end, and ten more. A
// computation that hears of no context ends with the process then; a store is whole wherever its process ends, and the run goes on
// with wf resume.
const stopMost = 15 * time.Second

// withSignals gives a context that ends with the first SIGINT, SIGTERM or SIGHUP, its cause a
// signalled error. The second one ends the process at once, as if nobody had listened, and so does the time after stopMost. What
// nohup has set aside stays so.
func withSignals(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	over := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signalled{s.(syscall.Signal)})
			select {
			case <-time.After(stopMost):
				fmt.Fprintf(os.Stderr, "wf: ended by itself %v after %s: what it worked on did not stop. wf resume goes on with a run\n", stopMost, unix.SignalName(s.(syscall.Signal)))
				os.Exit(128 + int(s.(syscall.Signal)))
			case <-over:
			}
		case <-over:
			signal.Stop(signals)
		}
	}()
	return ctx, sync.OnceFunc(func() {
		close(over)
		cancel(nil)
	})
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "wf",
		Short: "Run workflows of LLM roles, commands and people",
		Long: `wf runs workflows of LLM roles, commands and people that are written in YAML.

Everything that happens is kept as content-addressed records in one file, so that a run can be
resumed after any crash, re-entered, replayed, forked, compared and proved by hash.

wf help language shows how to write workflows, wf help exit-codes what the exit statuses mean.`,
		Example: `  # see a workflow repair a failing Go module, without a key
  wf demo

  # start one of your own
  wf init && wf run workflow.yaml`,
		PersistentPreRunE: a.start,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.home(cmd.Context()) },
		Args:              known,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	a.globalFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(badFlag)
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run"},
		&cobra.Group{ID: "look", Title: "Look"},
		&cobra.Group{ID: "write", Title: "Write workflows"},
		&cobra.Group{ID: "store", Title: "Store"},
		&cobra.Group{ID: "more", Title: "More"},
	)
	for _, c := range commands {
		cmd := c.make(a)
		cmd.GroupID = c.group
		root.AddCommand(cmd)
	}
	root.AddCommand(
		a.topic("exit-codes", "What the exit statuses mean", func() string { return help.Exits(exits) }),
		a.topic("expressions", "What can stand in an expression, with all functions", expressionsPage),
		a.topic(languageTopic, "The workflow language: guides, and every key with an example", languagePage),
	)
	root.SetHelpFunc(a.help)
	root.SetHelpCommand(newHelp(a))
	a.hubFlag(root)
	a.offer(root)
	return root
}

// group is a command that has others below it, and does nothing of its own.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = known
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// known refuses what is no command, and names those that it may have meant.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help lists the commands"
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + cmd.CommandPath() + " " + strings.Join(near, " or ") + "?"
	}
	return protocol.ErrUsage.With(hint, "unknown command %q for %q", args[0], cmd.CommandPath())
}

// commands lists every command with its place in the help.
var commands = []struct {
	group string
	make  func(*app) *cobra.Command
}{
	{"run", newRun},
	{"run", newResume},
	{"run", newAnswer},
	{"run", newCancel},
	{"run", newFork},
	{"run", newRestore},
	{"run", newCommit},
	{"run", newBackfill},
	{"run", newChat},
	{"run", newDemo},
	{"run", newServe},
	{"run", newHub},
	{"look", newLs},
	{"look", newShow},
	{"look", newLog},
	{"look", newWatch},
	{"look", newReplay},
	{"look", newVerify},
	{"look", newArtifact},
	{"look", newFiles},
	{"look", newBlame},
	{"look", newDiff},
	{"look", newMessages},
	{"look", newExplain},
	{"look", newBisect},
	{"look", newSweep},
	{"look", newEval},
	{"look", newTUI},
	{"look", newCost},
	{"look", newCache},
	{"look", newTrace},
	{"look", newTask},
	{"look", newMemory},
	{"write", newInit},
	{"write", newValidate},
	{"write", newGraph},
	{"write", newSchema},
	{"store", newExport},
	{"store", newImport},
	{"store", newPush},
	{"store", newPull},
	{"store", newCas},
	{"store", newRm},
	{"store", newGC},
	{"store", newStore},
	{"store", newHook},
	{"more", newDoctor},
	{"more", newModels},
	{"more", newTrust},
	{"more", newCompletion},
	{"more", newMan},
	{"more", newVersion},
}
