package api

import "wf/protocol"

// EvalSchema names the JSON form of an Eval, and EvalCaseSchema that of a case in JSON lines.
const (
	EvalSchema     = "wf.eval/v1"
	EvalCaseSchema = "wf.evalcase/v1"
)

// Eval is wf.eval/v1: the cases of a suite, and what became of their runs.
type Eval struct {
	Schema     string     `json:"schema"`
	Suite      string     `json:"suite"` // file, as it was given
	Workflow   string     `json:"workflow"`
	Definition CID        `json:"definition"`
	Cases      []EvalCase `json:"cases"` // in the order of the suite
	// Complete is false where the evaluation was interrupted, or a limit or an error ended it: cases are then missing, or
	// have runs that are not over.
	Complete bool     `json:"complete"`
	Passed   int      `json:"passed"` // cases
	Failed   int      `json:"failed"`
	Errors   int      `json:"errors"`
	Cut      int      `json:"cut"`
	Runs     int      `json:"runs"`
	Tokens   int64    `json:"tokens"`   // of all runs
	CostUSD  *float64 `json:"cost_usd"` // of all runs; null: unknown
	// Baseline is what was compared with: a file, or a run. It and what follows are left out without one.
	Baseline    string           `json:"baseline,omitempty"`
	Regressions []EvalRegression `json:"regressions,omitempty"`
	// Changes are differences that are no regressions: outputs, and cases that the baseline lacks.
	Changes []EvalRegression `json:"changes,omitempty"`
}

// EvalVerdict is what became of a case, or of one of its runs.
type EvalVerdict string

// The verdicts.
const (
	EvalPassed EvalVerdict = "passed"
	EvalFailed EvalVerdict = "failed"
	EvalError  EvalVerdict = "error" // it says nothing about the workflow: a tape lacks an answer, a model or sandbox was not there
	EvalCut    EvalVerdict = "cut"   // by a limit of the evaluation
	EvalOpen   EvalVerdict = "open"  // interrupted; --continue goes on
)

// EvalCase is a case, and what became of it.
type EvalCase struct {
	Name    string      `json:"name"`
	Line    int         `json:"line"` // in the suite
	Tags    []string    `json:"tags,omitempty"`
	Verdict EvalVerdict `json:"verdict"`
	Why     string      `json:"why,omitempty"`  // of the first run that did not pass
	Code    string      `json:"code,omitempty"` // of the error
	Hint    string      `json:"hint,omitempty"` // what to do about it
	Pass    float64     `json:"pass"`           // the share of runs that has to pass
	Rate    PassRate    `json:"rate"`           // of the completed runs
	Runs    []EvalRun   `json:"runs"`
	Tokens  int64       `json:"tokens"`
	CostUSD *float64    `json:"cost_usd"`       // null: unknown
	Tape    *EvalTape   `json:"tape,omitempty"` // that answered for the models
}

// EvalRun is one run of a case.
type EvalRun struct {
	Run        protocol.RunID     `json:"run,omitempty"` // left out where none could begin
	Status     protocol.RunStatus `json:"status,omitempty"`
	Verdict    EvalVerdict        `json:"verdict"`
	Wrong      []string           `json:"wrong,omitempty"` // what is not as expected
	Exit       *int               `json:"exit,omitempty"`  // of the check
	Why        string             `json:"why,omitempty"`   // of an error or a limit
	Code       string             `json:"code,omitempty"`
	Hint       string             `json:"hint,omitempty"`
	Outputs    protocol.JSON      `json:"outputs,omitempty"` // left out where they are long
	Steps      int                `json:"steps"`
	ActiveMS   int64              `json:"active_ms"`
	Tokens     int64              `json:"tokens"`
	CostUSD    *float64           `json:"cost_usd"` // null: unknown
	Tape       *EvalTape          `json:"tape,omitempty"`
	Recorded   string             `json:"recorded,omitempty"`   // the tape that was written
	Remembered bool               `json:"remembered,omitempty"` // of the call that --continue goes on with
}

// EvalTape tells how a tape answered.
type EvalTape struct {
	File     string `json:"file"`     // as the suite names it
	Match    string `json:"match"`    // request; sequence where a request was not as recorded
	Requests int    `json:"requests"` // in all
	Differed int    `json:"differed"` // of them, answered by their place in the sequence
	Missed   int    `json:"missed,omitempty"`
}

// EvalRegression is a case that is worse than in the baseline, or a difference.
type EvalRegression struct {
	Case string `json:"case"`
	// Kind is passed (it passed and does not now), rate (the intervals of the pass rates do not overlap), cost or
	// tokens; of a change outputs, new or missing.
	Kind string `json:"kind"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// EvalListed is a case of a suite, as wf eval --list shows it.
type EvalListed struct {
	Name  string   `json:"name"`
	Line  int      `json:"line"`
	Tags  []string `json:"tags"`
	N     int      `json:"n"`
	Pass  float64  `json:"pass"`
	Tape  string   `json:"tape,omitempty"`
	Files string   `json:"files,omitempty"`
	Check string   `json:"check,omitempty"`
}

// EvalList is wf.evallist/v1: the cases of a suite.
type EvalList struct {
	Schema   string       `json:"schema"`
	Suite    string       `json:"suite"`
	Workflow string       `json:"workflow"`
	Cases    []EvalListed `json:"cases"`
}
