package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
)

func newExport(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run as one CAR archive",
		Long: `Write a run, with its definition, inputs and every payload, as a CARv1 archive whose root is the head of
the run. Any IPLD tool can read it, wf verify FILE.car checks it, wf import reads it elsewhere.`,
		Example: `  wf export -1 -o run.car
  wf export 7K3Q > run.car`,
		Args:              takes(1, 1, "a run"),
		ValidArgsFunction: a.completeRuns,
		Annotations:       map[string]string{formatsKey: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withRun(ctx, args[0], func(s *cas.Store, run protocol.RunID) error { return a.export(ctx, s, run, out) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "-", "the file to write, - is stdout")
	return cmd
}

func (a *app) export(ctx context.Context, s *cas.Store, run protocol.RunID, path string) error {
	if path == "-" {
		if a.out.tty {
			return usagef("an archive is no text; name a file with -o run.car")
		}
		_, err := cas.Export(ctx, a.out, s, run)
		return err
	}
	// A file that is there keeps its old content until the new one is complete.
	f, err := os.CreateTemp(filepath.Dir(path), ".wf-export-*")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	stats, err := cas.Export(ctx, f, s, run)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	a.progress("wrote %s: %d blocks, %d bytes, root %s", path, stats.Blocks, stats.Bytes, stats.Root)
	return nil
}
