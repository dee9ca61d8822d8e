package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
)

func newExport(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run as one CAR archive",
		Long: `Write a run, with its definition, inputs and every payload, and with the runs of its sub-workflows, as a
CARv1 archive whose first root is the head of the run. Any IPLD tool can read it, wf verify FILE.car checks
it, wf import reads it elsewhere.`,
		Example: `  wf export -1 -o run.car
  wf export 7K3Q > run.car`,
		Args:        takes(1, 1, "a run"),
		Annotations: map[string]string{formatsKey: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withRun(ctx, args[0], func(s *cas.Store, run protocol.RunID) error { return a.export(ctx, s, run, out) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "-", "the file to write, - is stdout")
	return cmd
}

func (a *app) export(ctx context.Context, s *cas.Store, run protocol.RunID, path string) error {
	children, err := a.Engine(s, nil).Descendants(ctx, run)
	if err != nil {
		return err
	}
	if path == "-" {
		if a.out.tty {
			return usagef("an archive is no text; name a file with -o run.car")
		}
		_, err := cas.Export(ctx, a.out.Writer, s, run, children...)
		return err
	}
	to, err := compose.OutFile(path)
	if err != nil {
		return err
	}
	defer to.Close()
	var stats cas.Stats
	err = to.Replace(func(w io.Writer) (err error) {
		stats, err = cas.Export(ctx, w, s, run, children...)
		return err
	})
	if err != nil {
		return err
	}
	with := ""
	if stats.Runs > 1 {
		with = " with " + protocol.Plural(stats.Runs-1, "run") + " of sub-workflows"
	}
	a.progress("wrote %s%s: %d blocks, %d bytes, root %s", path, with, stats.Blocks, stats.Bytes, stats.Root)
	return nil
}
