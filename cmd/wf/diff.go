package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/protocol"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.diff(ctx, p, args[0], args[1]) })
		},
	}
}

func (a *app) diff(ctx context.Context, here *target, left, right string) error {
	var runs [2]protocol.RunID
	for i, arg := range []string{left, right} {
		var err error
		if runs[i], err = here.run(ctx, arg); err != nil {
			return err
		}
	}
	d, err := here.Diff(ctx, runs[0], runs[1])
	if err != nil {
		return err
	}
	if err = a.ShowDiff(d); err == nil && !d.Equal {
		return silent{errDifference}
	}
	return err
}
