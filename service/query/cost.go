package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"wf/agentkit/price"
	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// noTask is the group of the calls that belong to no task.
const noTask = "(no task)"

// A sum adds up calls.
type sum struct {
	api.CostRow
	pico    int64
	unknown int // calls with tokens and without a price
}

// Cost sums the calls of a run by one of api.CostGroups.
func Cost(ctx context.Context, s protocol.Source, run protocol.RunID, by string, table price.Table) (*api.Cost, error) {
	var rows []*sum
	var total sum
	named := map[string]*sum{}
	attempts := map[string]int{}
	goals := map[string]string{} // of tasks, by step
	reused := map[string]bool{}  // steps
	for e, err := range s.After(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case protocol.EvStepStarted:
			d, err := cas.DecodeData[protocol.StepStarted](&e.Event)
			if err != nil {
				return nil, err
			}
			attempts[e.StepName()] = d.Attempt
		case protocol.EvReused:
			reused[e.StepName()] = true
		case protocol.EvNotReused:
			delete(reused, e.StepName())
		case protocol.EvTaskStarted:
			d, err := cas.DecodeData[protocol.TaskStarted](&e.Event)
			if err != nil {
				return nil, err
			}
			goals[e.StepName()] = d.Goal
		case protocol.EvUsage:
			u, err := cas.DecodeData[protocol.Usage](&e.Event)
			if err != nil {
				return nil, err
			}
			name := costName(by, e.StepName(), attempts[e.StepName()], u)
			goal := ""
			if by == "task" {
				if goal = goals[e.StepName()]; goal == "" {
					name = noTask
				}
			}
			row := named[name]
			if row == nil {
				row = &sum{CostRow: api.CostRow{Name: name, Goal: goal}}
				named[name], rows = row, append(rows, row)
			}
			row.add(u, table)
			total.add(u, table)
		}
	}
	out := &api.Cost{Schema: "wf.cost/v1", Run: run, By: by, Prices: table.Date, Items: []*api.CostRow{}, Total: total.row(), Reused: len(reused)}
	for _, row := range rows {
		out.Items = append(out.Items, row.row())
	}
	return out, nil
}

// Calls are the model calls of a run behind an event, up to another; 0 is its newest.
func Calls(ctx context.Context, s protocol.Source, run protocol.RunID, from, to protocol.Seq) (out []protocol.Usage, err error) {
	for e, err := range s.After(ctx, run, from) {
		if err != nil {
			return nil, err
		}
		if to > 0 && e.Seq > to {
			return out, nil
		}
		if e.Type != protocol.EvUsage {
			continue
		}
		u, err := cas.DecodeData[protocol.Usage](&e.Event)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// CostOf is what calls cost together, in pico-dollars, nil where that is unknown, and as a row.
func CostOf(calls []protocol.Usage, table price.Table) (*int64, *api.CostRow) {
	var all sum
	for _, u := range calls {
		all.add(u, table)
	}
	row := all.row()
	if row.CostUSD == nil {
		return nil, row
	}
	return &all.pico, row
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

func (r *sum) add(u protocol.Usage, table price.Table) {
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

// row settles what is known. A call without tokens costs what cannot be known; where all calls are
// such, nothing is known.
func (r *sum) row() *api.CostRow {
	r.KnownUSD = dollars(r.pico)
	if r.unknown == 0 && (r.Calls == 0 || r.Unreported < r.Calls) {
		r.CostUSD = &r.KnownUSD
	}
	return &r.CostRow
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
