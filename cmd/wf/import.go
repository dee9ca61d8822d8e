package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/protocol"
)

func newImport(a *app) *cobra.Command {
	var o api.ImportOptions
	cmd := &cobra.Command{
		Use:   "import FILE.car",
		Short: "Read a run from a CAR archive",
		Long: `Read a CAR archive into the store. Every block must match its CID; a run comes in only once the whole of
it was verified, under its own id, and with the runs of its sub-workflows. A run that is there already goes on
where the archive holds more of it; it is never overwritten. - reads from stdin. At a server (--hub) it needs
scope admin; an archive that does not arrive whole leaves nothing there.`,
		Example: `  wf import run.car
  wf export -1 | wf --store /tmp/copy import -`,
		Args: takes(1, 1, "a CAR file"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importCAR(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar((*string)(&o.Run), "run", "", "another id for the imported run (default: its own)")
	cmd.Flags().StringVar(&o.Worker, "worker", "", "id of the worker of a hub that takes it (default: the only one)")
	return cmd
}

func (a *app) importCAR(ctx context.Context, path string, o api.ImportOptions) error {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return usagef("%v", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return usagef("%s is a directory; name an archive in it", path)
		}
		in = f
	}
	return a.atNew(ctx, func(p *target) error { // it may be the first run of the store
		got, err := p.Import(ctx, in, o)
		if err != nil {
			err = importHint(err, path)
		}
		return answer(a, got, err, a.tellImported)
	})
}

// tellImported says what an archive brought.
func (a *app) tellImported(got *api.Imported) error {
	for _, run := range got.Runs {
		fmt.Fprintln(a.Out, run)
	}
	if n := len(got.Children); n > 0 {
		a.Progress("with it came %s of sub-workflows", protocol.Plural(n, "run"))
	}
	for _, run := range got.Forwarded {
		a.Progress("run %s was there, and went on to the head of the archive", run)
	}
	for _, run := range got.Held {
		a.Progress("run %s was there already", run)
	}
	if len(got.Runs) == 0 {
		for _, root := range got.Roots {
			fmt.Fprintln(a.Out, root)
		}
	}
	a.Progress("imported %d blocks, %d bytes", got.Blocks, got.Bytes)
	return nil
}

// importHint has a fault of the archive name what tells more.
func importHint(err error, path string) error {
	if path == "-" || !api.IsArchiveFault(err) {
		return err
	}
	return &protocol.Error{Code: protocol.CodeOf(err), Message: err.Error(), Hint: "wf verify " + protocol.ShellWord(path) + " names every fault; " + protocol.HintOf(err)}
}
