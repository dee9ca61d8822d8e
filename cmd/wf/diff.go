package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newDiff(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs, step by step",
		Long: `Compare two runs. Steps with the same CID are the same in everything and are skipped; the first step
that differs comes with what differs in it. Exit 1 when something does.`,
		Example: `  wf diff -2 -1
  wf diff 7K3Q 7K3R -v`,
		Args: takes(2, 2, "a run", "a second run"),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
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
}
