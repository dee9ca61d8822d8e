package service

import (
	"context"

	"wf/api"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// usedUntil is what the model calls of a part of a run used.
type usedUntil struct {
	usage    api.SweepUsage
	pico     int64 // of the calls whose price is known
	tokens   int64 // as the limit of tokens counts them
	scripted bool
	ms       int64
}

func (u usedUntil) micro() int64 { return (u.pico + 999_999) / 1_000_000 }

// microOf is what is known of what was used, in micro-dollars.
func microOf(u api.SweepUsage) int64 {
	if u.CostUSD == nil {
		return 0
	}
	return int64(*u.CostUSD*1e6 + 0.5)
}

// usedBy sums the calls of a run behind an event, up to another; 0 is its newest.
func (s *sweep) usedBy(ctx context.Context, run protocol.RunID, from, to protocol.Seq) (u usedUntil, err error) {
	table, err := s.Prices()
	if err != nil {
		return u, err
	}
	calls, err := query.Calls(ctx, s.Store, run, from, to)
	if err != nil {
		return u, err
	}
	pico, row := query.CostOf(calls, table)
	u.usage = api.SweepUsage{Calls: row.Calls, Input: row.Input, Cached: row.Cached, Output: row.Output}
	u.tokens = row.Input + row.Output
	for _, c := range calls {
		if known := table.Cost(c); known != nil {
			u.pico += *known
		}
		u.scripted = u.scripted || compose.Scripted(c.Model)
	}
	if pico != nil {
		u.usage.CostUSD = new(float64(*pico) / 1e12)
	}
	return u, nil
}
