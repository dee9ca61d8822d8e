package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain RUN:STEP",
		Short: "Tell why a step was entered: every condition with its value",
		Example: `  wf explain -1:coder#2
  wf explain 7K3Q:gate#1 -o json`,
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: a.ofStep(func(ctx context.Context, p *target, at api.Ref) error {
			out, err := p.Explain(ctx, at.Run, at.Step)
			return answer(a, out, err, a.ShowExplanation)
		}),
	}
}
