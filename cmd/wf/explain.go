package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
)

func newExplain(a *app) *cobra.Command {
	var cache bool
	cmd := &cobra.Command{
		Use:   "explain RUN:STEP",
		Short: "Tell why a step was entered: every condition with its value",
		Example: `  wf explain -1:coder#2
  wf explain 7K3Q:gate#1 -o json

  # why a step with cache was performed, and not reused
  wf explain -1:build#1 --cache`,
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: a.ofStep(func(ctx context.Context, p *target, at api.Ref) error {
			out, err := p.Explain(ctx, at.Run, at.Step)
			if cache {
				return answer(a, out, err, a.ShowReuse)
			}
			return answer(a, out, err, a.ShowExplanation)
		}),
	}
	cmd.Flags().BoolVar(&cache, "cache", false, "tell whether an earlier result was reused, or the first thing in which it differs")
	return cmd
}
