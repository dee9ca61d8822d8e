package render

import (
	"fmt"
	"testing"

	"wf/api"
	"wf/protocol"
)

// The table of a sweep has a row for each cell, with the runs that did not pass first, and says which are at work.
func TestM03TheTableOfASweep(t *testing.T) {
	s := &api.Sweep{Tag: "sweep-x", N: 2, Definitions: []api.SweepDefinition{{Name: "a.yaml"}}, Of: &api.SweepOrigin{Run: "R", Step: "coder#2"}}
	for i := range 5 {
		s.Cells = append(s.Cells, api.SweepCell{Models: map[string]string{"": fmt.Sprint("m", i)}, Inputs: protocol.JSON("{}")})
	}
	for i, states := range [][]api.SweepState{{api.SweepPassed, api.SweepPassed}, {api.SweepPassed, api.SweepFailed}, {api.SweepError, api.SweepCut}, {api.SweepPassed, api.SweepRuns}, {api.SweepOpen, api.SweepOpen}} {
		for n, state := range states {
			x := api.SweepTrial{Cell: i, N: n + 1, State: state, Why: "because of it"}
			if state != api.SweepOpen {
				x.Run = protocol.RunID(fmt.Sprintf("R%d%d", i, n))
			}
			s.Trials = append(s.Trials, x)
		}
	}
	s.Sum()
	x := SweepTable(s)
	if x.Complete || x.Rows != 5 || x.Trials != 10 || x.Done != 7 || x.Failed != 3 || x.Title != "sweep of R:coder#2" {
		t.Errorf("%+v", x.TableHead)
	}
	var got []api.RowState
	for i, row := range x.Body {
		got = append(got, row.State)
		if len(row.Cells) != len(x.Columns) || row.Cells[0] != fmt.Sprint("m", i) {
			t.Errorf("row %d has %q below %v", i, row.Cells, x.Columns)
		}
	}
	if fmt.Sprint(got) != "[passed mixed error running queued]" {
		t.Errorf("the states are %v", got)
	}
	if row := x.Body[1]; row.Runs[0] != "R11" || row.Runs[1] != "R10" || row.Why != "because of it" {
		t.Errorf("the runs are %v: %q", row.Runs, row.Why)
	}
}

// At most TableRuns runs of a row are named, at, below and beyond that.
func TestM03ARowNamesSoManyRuns(t *testing.T) {
	for _, n := range []int{0, api.TableRuns - 1, api.TableRuns, api.TableRuns + 1, 3 * api.TableRuns} {
		var row api.TableRow
		for range n {
			row.Add("R")
		}
		if len(row.Runs) != min(n, api.TableRuns) || len(row.Runs)+row.Others != n {
			t.Errorf("of %d runs %d are named, and %d told", n, len(row.Runs), row.Others)
		}
	}
}

func TestM03TheTableOfAnEvaluation(t *testing.T) {
	e := &api.Eval{Suite: "suite.yaml", Complete: true, Cases: []api.EvalCase{
		{Name: "a", Verdict: api.EvalPassed, Rate: api.PassRate{N: 1, Passed: 1}, Runs: []api.EvalRun{{Run: "A", Verdict: api.EvalPassed}}},
		{Name: "b", Verdict: api.EvalFailed, Why: "x\ny", Rate: api.PassRate{N: 2, Passed: 1}, Runs: []api.EvalRun{{Run: "B1", Verdict: api.EvalPassed}, {Run: "B2", Verdict: api.EvalFailed}}},
		{Name: "c", Verdict: api.EvalError, Why: "no model", Runs: []api.EvalRun{{Verdict: api.EvalError}}},
		{Name: "d", Verdict: api.EvalOpen},
	}}
	x := EvalPage(e)
	if x.Done != 4 || x.Failed != 2 || x.Trials != 4 || x.Rows != 4 || !x.Complete {
		t.Errorf("%+v", x.TableHead)
	}
	var got []api.RowState
	for _, row := range x.Body {
		got = append(got, row.State)
		if len(row.Cells) != len(x.Columns) {
			t.Errorf("%q below %v", row.Cells, x.Columns)
		}
	}
	if fmt.Sprint(got) != "[passed mixed error queued]" || x.Body[1].Runs[0] != "B2" || x.Body[1].Why != "x; y" || x.Body[0].Why != "" {
		t.Errorf("%v, %+v", got, x.Body)
	}
}
