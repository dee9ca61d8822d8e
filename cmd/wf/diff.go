package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newDiff(a *app) *cobra.Command {
	var files bool
	cmd := &cobra.Command{
		Use:   "diff RUN[:STEP] [RUN[:STEP]]",
		Short: "Compare two runs, step by step, or the files of steps",
		Long: `Compare two runs. Steps with the same CID are the same in everything and are skipped; the first step
that differs comes with what differs in it. Consecutive equal steps are one line with their number; --all
shows each. Exit 1 when something differs.

With --files the files of the workspace are compared, line by line: those that a step found with those that it left, or those
that two steps left. Of a run without a step they are those of its beginning and its end.`,
		Example: `  wf diff -2 -1
  wf diff 7K3Q 7K3R -v
  wf diff -1:coder#2 --files
  wf diff -1:coder#1 -1:coder#2 --files`,
		Args: func(cmd *cobra.Command, args []string) error {
			if files {
				return takes(1, 2, "a step")(cmd, args)
			}
			return takes(2, 2, "a run", "a second run")(cmd, args)
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			if files {
				return a.filesDiff(ctx, p, args)
			}
			left, err := p.run(ctx, args[0])
			if err != nil {
				return err
			}
			right, err := p.run(ctx, args[1])
			if err != nil {
				return err
			}
			d, err := p.Diff(ctx, left, right)
			if err = answer(a, d, err, a.ShowDiff); err == nil && !d.Equal {
				return silent{errDifference}
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&a.All, "all", false, "every step that is the same on a line of its own")
	cmd.Flags().BoolVar(&files, "files", false, "compare the files of the workspace")
	return cmd
}
