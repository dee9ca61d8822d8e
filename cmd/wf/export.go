package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	children, err := a.newEngine(s, nil).Descendants(ctx, run)
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
	var stats cas.Stats
	err = writeWhole(path, func(w io.Writer) (err error) {
		stats, err = cas.Export(ctx, w, s, run, children...)
		return err
	})
	if err != nil {
		return err
	}
	with := ""
	if stats.Runs > 1 {
		with = " with " + plural(stats.Runs-1, "run") + " of sub-workflows"
	}
	a.progress("wrote %s%s: %d blocks, %d bytes, root %s", path, with, stats.Blocks, stats.Bytes, stats.Root)
	return nil
}

// writeWhole has write fill the file at path. One that is there keeps its old content until the
// new one is complete; what is no file, a pipe or a device, is written to as it is.
func writeWhole(path string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o644)
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return usagef("%s is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	case err == nil:
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".wf-export-*")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("there is no directory %s", filepath.Dir(path))
	case err != nil:
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Chmod(f.Name(), mode)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
