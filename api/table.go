package api

import (
	"context"

	"wf/protocol"
)

// Tables shows what sweeps and evals have come to. None of it changes anything.
type Tables interface {
	// Tables lists them, the one that changed last first.
	Tables(ctx context.Context, p Part) (*TableList, error)
	// Table is one of them. One that is not there is an error wrapping protocol.ErrNotFound.
	Table(ctx context.Context, id protocol.RunID) (*Table, error)
}

// TableList are the sweeps and evals of a store: wf.tables/v1.
type TableList struct {
	Schema string      `json:"schema"`
	Items  []TableHead `json:"items"`          // the one that changed last first
	Next   string      `json:"next,omitempty"` // Part.After of those behind these; "" at the end
}

// TableHead is what a list shows of a sweep or an eval.
type TableHead struct {
	ID       protocol.RunID `json:"id"`
	Kind     TableKind      `json:"kind"`
	Title    string         `json:"title"`    // what is compared, in a line
	Complete bool           `json:"complete"` // all trials have ended
	Live     bool           `json:"live"`     // a process is at work on it
	Began    Time           `json:"began"`
	Changed  Time           `json:"changed"`
	Rows     int            `json:"rows"`
	Done     int            `json:"done"`   // trials that have ended
	Trials   int            `json:"trials"` // that there are to be
	Failed   int            `json:"failed"` // trials that did not pass, or could not be told
}

// TableKind is what made a table.
type TableKind string

// The kinds.
const (
	OfSweep TableKind = "sweep"
	OfEval  TableKind = "eval"
)

// Table is what a sweep or an eval has come to so far, a row for each variant or case: wf.table/v1. It is for screens; the
// commands themselves write wf.sweep/v1 and wf.eval/v1.
type Table struct {
	Schema string `json:"schema"`
	TableHead
	Notes   []string      `json:"notes"` // sentences below it
	Columns []TableColumn `json:"columns"`
	Body    []TableRow    `json:"body"`
}

// TableColumn is a column of a Table.
type TableColumn struct {
	Name   string `json:"name"`
	Number bool   `json:"number"` // its cells stand right
}

// TableRow is a variant of a sweep, or a case of an eval.
type TableRow struct {
	State  RowState         `json:"state"`
	Cells  []string         `json:"cells"`            // one for each column, as people read it
	Why    string           `json:"why,omitempty"`    // it did not pass, in a sentence
	Runs   []protocol.RunID `json:"runs"`             // of its trials, at most TableRuns, those that did not pass first
	Others int              `json:"others,omitempty"` // runs beyond those
}

// RowState is how a row of a Table stands.
type RowState string

// The states.
const (
	RowQueued  RowState = "queued" // nothing of it has begun
	RowRunning RowState = "running"
	RowPassed  RowState = "passed"
	RowMixed   RowState = "mixed" // some of its trials passed
	RowFailed  RowState = "failed"
	RowError   RowState = "error" // no trial of it could be told
)

// TableRuns is how many runs a TableRow names.
const TableRuns = 100

// Add names one more run.
func (r *TableRow) Add(run protocol.RunID) {
	if len(r.Runs) == TableRuns {
		r.Others++
		return
	}
	r.Runs = append(r.Runs, run)
}
