package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/proof"
)

func newExport(a *app) *cobra.Command {
	var out string
	var o api.ExportOptions
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run as one CAR archive",
		Long: `Write a run, with its definition, inputs and every payload, and with the runs of its sub-workflows, as a
CARv1 archive with the head of the run as its first root. Any IPLD tool can read it, wf verify FILE.car checks
it, wf import reads it elsewhere. The files of the workspace are left out, unless --files adds them.`,
		Example: `  wf export -1 -o run.car
  wf export 7K3Q > run.car
  wf export -1 --files -o run.car`,
		Args:        takes(1, 1, "a run"),
		Annotations: map[string]string{formatsKey: ""},
		RunE:        a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error { return a.export(ctx, p, run, o, out) }),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "-", "the file to write, - is stdout")
	cmd.Flags().BoolVar(&o.Files, "files", false, "add the files of the workspace that the run recorded, before and after each step")
	return cmd
}

func (a *app) export(ctx context.Context, here *target, run protocol.RunID, o api.ExportOptions, path string) error {
	if path == "-" {
		if a.Out.TTY {
			return usagef("an archive is no text; name a file with -o run.car")
		}
		return here.Export(ctx, run, o, a.Out.Writer)
	}
	to, err := compose.OutFile(path)
	if err != nil {
		return err
	}
	defer to.Close()
	var stats cas.Stats
	err = to.Replace(compose.Private, func(w io.Writer) error {
		file := &sink{to: w}
		err := proof.Archived(ctx, here, run, o, func(r io.Reader) (err error) {
			stats, err = cas.CountCAR(io.TeeReader(r, file))
			return err
		})
		if file.err != nil {
			return fmt.Errorf("export run %s: write %s: %w", run, path, file.err)
		}
		return err
	})
	if err != nil {
		return err
	}
	with := ""
	if stats.Runs > 1 {
		with = " with " + protocol.Plural(stats.Runs-1, "run") + " of sub-workflows"
	}
	a.Progress("wrote %s%s: %d blocks, %d bytes, root %s", path, with, stats.Blocks, stats.Bytes, stats.Root)
	return nil
}

// sink keeps the error of the file that is written, which is no fault of the archive.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (n int, err error) {
	n, s.err = s.to.Write(p)
	return n, s.err
}
