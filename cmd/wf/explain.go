package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain RUN:STEP",
		Short: "Tell why a step was entered: every condition with its value",
		Example: `  wf explain -1:coder#2
  wf explain 7K3Q:gate#1 -o json`,
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.explain(ctx, p, args[0]) })
		},
	}
}

func (a *app) explain(ctx context.Context, here *target, arg string) error {
	at, err := here.step(ctx, arg)
	if err != nil {
		return err
	}
	out, err := here.Explain(ctx, at.Run, at.Step)
	if err != nil {
		return err
	}
	return a.ShowExplanation(out)
}
