package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/price"
	"wf/cas"
	"wf/protocol"
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
			if !slices.Contains(costGroups, by) {
				return usagef("--by %q: want %s", by, strings.Join(costGroups, ", "))
			}
			ctx := cmd.Context()
			return a.withRun(ctx, latestUnless(args), func(s *cas.Store, run protocol.RunID) error {
				return a.cost(ctx, s, run, by)
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", "role", "what to add up for: "+strings.Join(costGroups, ", "))
	return cmd
}

// costGroups are what costs can be summed by. Kinds are: visit, the calls of first attempts;
// retry, those of later ones; compaction, the summaries; failed, those that gave no answer.
var costGroups = []string{"role", "step", "task", "model", "kind"}

// noTask is the group of the calls that belong to no task.
const noTask = "(no task)"

// costRow is a sum over calls.
type costRow struct {
	Name         string       `json:"name,omitempty"`
	Goal         string       `json:"goal,omitempty"` // of a task
	Calls        int          `json:"calls"`
	Unreported   int          `json:"unreported"` // calls of which the provider told no tokens
	Input        int64        `json:"input"`
	Cached       int64        `json:"cached"`
	CacheWrite5m int64        `json:"cache_write_5m"`
	CacheWrite1h int64        `json:"cache_write_1h"`
	Output       int64        `json:"output"`
	CostUSD      *json.Number `json:"cost_usd"`  // null where a price is unknown
	KnownUSD     json.Number  `json:"known_usd"` // of the calls whose price is known

	pico    int64
	unknown int // calls with tokens and without a price
}

type costJSON struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	By     string         `json:"by"`
	Prices string         `json:"prices"` // date of the table
	Items  []*costRow     `json:"items"`
	Total  *costRow       `json:"total"`
}

func (a *app) cost(ctx context.Context, s *cas.Store, run protocol.RunID, by string) error {
	table, err := a.prices()
	if err != nil {
		return err
	}
	out, err := costOf(ctx, s, run, by, table)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.answer(out)
	}
	return a.costTable(out)
}

// costOf sums the calls of a run.
func costOf(ctx context.Context, s protocol.Source, run protocol.RunID, by string, table price.Table) (costJSON, error) {
	out := costJSON{Schema: "wf.cost/v1", Run: run, By: by, Prices: table.Date, Items: []*costRow{}, Total: &costRow{}}
	rows := map[string]*costRow{}
	attempts := map[string]int{}
	goals := map[string]string{} // of tasks, by step
	for e, err := range s.After(ctx, run, 0) {
		if err != nil {
			return out, err
		}
		switch e.Type {
		case protocol.EvStepStarted:
			d, err := cas.DecodeData[protocol.StepStarted](&e.Event)
			if err != nil {
				return out, err
			}
			attempts[e.StepName()] = d.Attempt
		case protocol.EvTaskStarted:
			d, err := cas.DecodeData[protocol.TaskStarted](&e.Event)
			if err != nil {
				return out, err
			}
			goals[e.StepName()] = d.Goal
		case protocol.EvUsage:
			u, err := cas.DecodeData[protocol.Usage](&e.Event)
			if err != nil {
				return out, err
			}
			name := costName(by, e.StepName(), attempts[e.StepName()], u)
			goal := ""
			if by == "task" {
				if goal = goals[e.StepName()]; goal == "" {
					name = noTask
				}
			}
			row := rows[name]
			if row == nil {
				row = &costRow{Name: name, Goal: goal}
				rows[name], out.Items = row, append(out.Items, row)
			}
			row.add(u, table)
			out.Total.add(u, table)
		}
	}
	for _, row := range append(out.Items, out.Total) {
		row.sum()
	}
	return out, nil
}

// costName is the group a call belongs to.
func costName(by, step string, attempt int, u protocol.Usage) string {
	switch by {
	case "step", "task":
		return step
	case "model":
		return u.Model
	case "kind":
		switch {
		case u.Input == nil && u.Output == nil, u.Stop == protocol.StopRefused:
			return "failed"
		case u.Kind != protocol.UsageTurn:
			return u.Kind
		case attempt > 1:
			return "retry"
		}
		return "visit"
	}
	role, _, _ := strings.Cut(step, "#")
	return role
}

func (r *costRow) add(u protocol.Usage, table price.Table) {
	r.Calls++
	for _, f := range []struct {
		sum *int64
		n   *int64
	}{{&r.Input, u.Input}, {&r.Cached, u.Cached}, {&r.CacheWrite5m, u.CacheWrite5m}, {&r.CacheWrite1h, u.CacheWrite1h}, {&r.Output, u.Output}} {
		if f.n != nil {
			*f.sum += *f.n
		}
	}
	cost := table.Cost(u)
	switch {
	case cost != nil:
		r.pico += *cost
	case u.Input == nil && u.Output == nil:
		r.Unreported++
	default:
		r.unknown++
	}
}

// sum settles what is known. A call that told no tokens costs nothing that anyone could know;
// where all calls are such, nothing is known.
func (r *costRow) sum() {
	r.KnownUSD = dollars(r.pico)
	if r.unknown == 0 && (r.Calls == 0 || r.Unreported < r.Calls) {
		r.CostUSD = &r.KnownUSD
	}
}

// dollars is an amount of pico-dollars, exactly.
func dollars(pico int64) json.Number {
	digits := fmt.Sprintf("%013d", pico)
	whole, fraction := digits[:len(digits)-12], strings.TrimRight(digits[len(digits)-12:], "0")
	if fraction == "" {
		return json.Number(whole)
	}
	return json.Number(whole + "." + fraction)
}

func (a *app) costTable(c costJSON) error {
	p := paint{a.out.color}
	var head []string
	for _, name := range []string{c.By, "calls", "input", "cached", "written", "output", "cost"} {
		head = append(head, p.dim(name))
	}
	rows := [][]string{head}
	line := func(r *costRow, name string) {
		written := r.CacheWrite5m + r.CacheWrite1h
		rows = append(rows, []string{visible(name), strconv.Itoa(r.Calls), count(&r.Input), count(&r.Cached), count(&written), count(&r.Output), r.money()})
	}
	for _, r := range c.Items {
		name := r.Name
		if r.Goal != "" {
			name += "  " + oneLine(r.Goal, protocol.TaskGoalMax)
		}
		line(r, name)
	}
	line(c.Total, "total")
	if err := table(a.out, rows); err != nil {
		return err
	}
	if n := c.Total.Unreported; n > 0 {
		fmt.Fprintf(a.out, "%s told no tokens and %s not counted\n", plural(n, "call"), map[bool]string{true: "is", false: "are"}[n == 1])
	}
	if c.Total.CostUSD == nil {
		fmt.Fprintln(a.out, "some prices are unknown: set them under prices: in "+userConfig()+", or in .wf/config.yaml and then wf trust, in micro-dollars per million tokens")
	}
	return nil
}

// money is a cost for people: unknown, exact to a hundredth of a cent, or at least what is known.
func (r *costRow) money() string {
	amount := fmt.Sprintf("$%.4f", float64(r.pico)/1e12)
	switch {
	case r.CostUSD != nil:
		return amount
	case r.pico > 0:
		return "≥ " + amount
	}
	return "unknown"
}
