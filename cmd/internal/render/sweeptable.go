package render

import (
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
)

// sweepTexts are the columns of a sweep's table that are no numbers.
var sweepTexts = []string{"model", "definition", "inputs"}

// SweepTable is the table of a sweep as other screens show it.
func SweepTable(s *api.Sweep) *api.Table {
	t := &api.Table{TableHead: api.TableHead{Kind: api.OfSweep, Title: sweepTitle(s), Complete: true, Rows: len(s.Cells), Trials: len(s.Trials)}, Notes: []string{"its runs: " + wf("ls", "--tag", s.Tag)}}
	rows := sweepRows(s, Paint{})
	for _, name := range rows[0] {
		t.Columns = append(t.Columns, api.TableColumn{Name: name, Number: !slices.Contains(sweepTexts, name)})
	}
	for _, cells := range rows[1:] {
		t.Body = append(t.Body, api.TableRow{State: api.RowQueued, Cells: cells, Runs: []protocol.RunID{}})
	}
	running := make([]bool, len(s.Cells))
	for pass := range 2 { // those that did not pass are named first
		for i := range s.Trials {
			x := &s.Trials[i]
			bad := x.State == api.SweepFailed || x.State == api.SweepError || x.State == api.SweepCut
			if bad != (pass == 0) {
				continue
			}
			row := &t.Body[x.Cell]
			switch {
			case bad:
				t.Done, t.Failed = t.Done+1, t.Failed+1
				if row.Why == "" {
					row.Why = OneLine(x.Why, 300)
				}
			case x.State == api.SweepPassed:
				t.Done++
			default:
				t.Complete = false
				running[x.Cell] = running[x.Cell] || x.State == api.SweepRuns
			}
			if x.Run != "" {
				row.Add(x.Run)
			}
		}
	}
	for i := range s.Cells {
		t.Body[i].State = sweepState(&s.Cells[i], running[i])
	}
	return t
}

func sweepTitle(s *api.Sweep) string {
	if s.Of != nil {
		return fmt.Sprintf("sweep of %s:%s", s.Of.Run, s.Of.Step)
	}
	var names []string
	for _, d := range s.Definitions {
		names = append(names, d.Name)
	}
	return OneLine("sweep of "+strings.Join(names, ", "), 200)
}

// sweepState is how a cell stands.
func sweepState(c *api.SweepCell, running bool) api.RowState {
	switch {
	case running:
		return api.RowRunning
	case c.Pass.N == 0 && c.Errors+c.Cut > 0:
		return api.RowError
	case c.Pass.N == 0:
		return api.RowQueued
	case c.Pass.Passed == c.Pass.N && c.Errors+c.Cut == 0:
		return api.RowPassed
	case c.Pass.Passed == 0:
		return api.RowFailed
	}
	return api.RowMixed
}
