package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/protocol"
)

func newCache(a *app) *cobra.Command {
	var least float64
	cmd := &cobra.Command{
		Use:   "cache [RUN]",
		Short: "Tell how much of each prompt the provider has seen before",
		Long: `Build every prompt of a run again and tell, for each model call, how much of the prompt before it begins
with, byte for byte, and what the provider read from its cache. A call that should have been read and was
not has a label: cold, short, ttl, model, tools, system, history, compaction, attempt or provider.`,
		Example: `  wf cache -1

  # in CI: fail when a prompt no longer begins with the one before
  wf cache -1 --min-prefix 1.0`,
		Args: takes(0, 1),
		PreRunE: func(*cobra.Command, []string) error {
			if least < 0 || least > 1 {
				return usagef("--min-prefix %v: want a share, from 0 to 1.0", least)
			}
			return nil
		},
		RunE: a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
			out, err := p.Cache(ctx, run)
			if err := answer(a, out, err, a.ShowCache); err != nil || out.MinPrefix >= least {
				return err
			}
			return errDifference.With("the part that differs is named above; wf messages shows the prompts",
				"run %s: a prompt begins with only %.4f of the one before", run, out.MinPrefix)
		}),
	}
	cmd.Flags().Float64Var(&least, "min-prefix", 0, "exit 1 if a prompt shares less than this of the one before; compactions aside")
	return cmd
}
