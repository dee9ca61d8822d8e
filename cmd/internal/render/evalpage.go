package render

import (
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// EvalPage is the table of an evaluation as other screens show it: a row for each case.
func EvalPage(e *api.Eval) *api.Table {
	t := &api.Table{TableHead: api.TableHead{Kind: api.OfEval, Title: OneLine("eval of "+e.Suite, 200), Complete: e.Complete, Rows: len(e.Cases)}, Notes: []string{},
		Columns: []api.TableColumn{{Name: "case"}, {Name: "pass", Number: true}, {Name: "tokens", Number: true}, {Name: "cost", Number: true}, {Name: "time", Number: true}, {Name: "tape"}}}
	for i := range e.Cases {
		c := &e.Cases[i]
		row := api.TableRow{State: evalState(c), Runs: []protocol.RunID{}}
		if row.State != api.RowPassed {
			row.Why = OneLine(strings.ReplaceAll(c.Why, "\n", "; "), 300)
		}
		for pass := range 2 { // those that did not pass are named first
			for _, r := range c.Runs {
				if (r.Verdict != api.EvalPassed) == (pass == 0) && r.Run != "" {
					row.Add(r.Run)
				}
			}
		}
		var ms int64
		for _, r := range c.Runs {
			t.Trials++
			ms += r.ActiveMS
			switch r.Verdict {
			case api.EvalOpen:
			case api.EvalPassed:
				t.Done++
			default:
				t.Done, t.Failed = t.Done+1, t.Failed+1
			}
		}
		cells := []string{c.Name, "", "", strings.TrimSpace(evalCost(c.CostUSD)), "", evalTape(c.Tape)}
		if c.Rate.N > 0 {
			cells[1] = evalRate(c)
		}
		if c.Tokens > 0 {
			cells[2] = strconv.FormatInt(c.Tokens, 10)
		}
		if ms > 0 {
			cells[4] = Span(time.Duration(ms) * time.Millisecond)
		}
		row.Cells = cells
		t.Body = append(t.Body, row)
	}
	for _, r := range e.Regressions {
		t.Notes = append(t.Notes, OneLine("worse than in the baseline: "+r.Case+", "+r.Kind+": "+r.Old+" → "+r.New, 300))
	}
	return t
}

// evalState is how a case stands.
func evalState(c *api.EvalCase) api.RowState {
	switch c.Verdict {
	case api.EvalPassed:
		return api.RowPassed
	case api.EvalFailed:
		if c.Rate.Passed > 0 {
			return api.RowMixed
		}
		return api.RowFailed
	case api.EvalError, api.EvalCut:
		return api.RowError
	}
	for _, r := range c.Runs {
		if r.Run != "" {
			return api.RowRunning
		}
	}
	return api.RowQueued
}
