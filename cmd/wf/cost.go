package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/service/compose"
)

func newCost(a *app) *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use:   "cost [RUN]",
		Short: "Tell what a run's model calls used and cost",
		Long: `Tell what the model calls of a run used and cost, by role, step, task, model or kind. Every call counts, those of
attempts that failed too. A model without a price in the table has a cost that is unknown, not 0.`,
		Example: `  wf cost -1
  wf cost 7K3Q --by model
  wf cost -1 --by step -o json | jq .total.cost_usd`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(api.CostGroups, by) {
				return usagef("--by %q: want %s", by, strings.Join(api.CostGroups, ", "))
			}
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.cost(ctx, p, latestUnless(args), by) })
		},
	}
	cmd.Flags().StringVar(&by, "by", "role", "what to add up for: "+strings.Join(api.CostGroups, ", "))
	return cmd
}

func (a *app) cost(ctx context.Context, here *target, arg, by string) error {
	run, err := here.run(ctx, arg)
	if err != nil {
		return err
	}
	out, err := here.Cost(ctx, run, by)
	if err != nil {
		return err
	}
	return a.ShowCost(out, compose.UserConfig())
}
