package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newExplain(a *app) *cobra.Command {
	var cache bool
	cmd := &cobra.Command{
		Use:   "explain [RUN|RUN:STEP]",
		Short: "Explain why a run ended or a step was entered: every condition with its value",
		Example: `  # why a run ended, or is where it is: without one the latest run
  wf explain
  wf explain 7K3Q

  # why a step was entered
  wf explain -1:coder#2
  wf explain 7K3Q:gate#1 -o json

  # why a step with cache was performed, and not reused
  wf explain -1:build#1 --cache`,
		Args: takes(0, 1, "a run, or a step such as -1:coder#2"),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			at, err := p.runOrStep(ctx, latestUnless(args))
			switch {
			case err != nil:
				return err
			case at.Step == "" && cache:
				return at.MustBeStep(written(latestUnless(args)))
			case at.Step == "":
				out, err := p.ExplainRun(ctx, at.Run)
				return answer(a, out, err, a.ShowRunExplanation)
			}
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
