package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
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
	if a.AsJSON() {
		return a.Answer(out)
	}
	return a.costTable(out)
}

func (a *app) costTable(c *api.Cost) error {
	p := a.Out.Paint()
	var head []string
	for _, name := range []string{c.By, "calls", "input", "cached", "written", "output", "cost"} {
		head = append(head, p.Dim(name))
	}
	rows := [][]string{head}
	line := func(r *api.CostRow, name string) {
		written := r.CacheWrite5m + r.CacheWrite1h
		rows = append(rows, []string{render.Visible(name), strconv.Itoa(r.Calls), render.Count(&r.Input), render.Count(&r.Cached), render.Count(&written), render.Count(&r.Output), render.Money(r)})
	}
	for _, r := range c.Items {
		name := r.Name
		if r.Goal != "" {
			name += "  " + render.OneLine(r.Goal, protocol.TaskGoalMax)
		}
		line(r, name)
	}
	line(c.Total, "total")
	if err := render.Table(a.Out, rows); err != nil {
		return err
	}
	if n := c.Total.Unreported; n > 0 {
		fmt.Fprintf(a.Out, "%s told no tokens and %s not counted\n", protocol.Plural(n, "call"), map[bool]string{true: "is", false: "are"}[n == 1])
	}
	if c.Total.CostUSD == nil {
		fmt.Fprintln(a.Out, "some prices are unknown: set them under prices: in "+compose.UserConfig()+", or in .wf/config.yaml and then wf trust, in micro-dollars per million tokens")
	}
	return nil
}
