package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/protocol"
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
		PreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains(api.CostGroups, by) {
				return usagef("--by %q: want %s", by, strings.Join(api.CostGroups, ", "))
			}
			return nil
		},
		RunE: a.cost(&by),
	}
	cmd.Flags().StringVar(&by, "by", "role", "what to add up for: "+strings.Join(api.CostGroups, ", "))
	return cmd
}

// cost tells what a run cost, by one of api.CostGroups.
func (a *app) cost(by *string) func(*cobra.Command, []string) error {
	return a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
		out, err := p.Cost(ctx, run, *by)
		return answer(a, out, err, func(c *api.Cost) error { return a.ShowCost(c, compose.UserConfig()) })
	})
}
