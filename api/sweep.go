package api

import (
	"math"

	"wf/protocol"
)

// SweepSchema names the JSON form of a Sweep.
const SweepSchema = "wf.sweep/v1"

// Sweep is wf.sweep/v1: what became of trials of models, definitions and inputs, each tried a few times.
type Sweep struct {
	Schema      string            `json:"schema"`
	Tag         string            `json:"tag"` // that its runs have
	Of          *SweepOrigin      `json:"of"`  // what all trials are forks of; null where they are runs of their own
	Check       string            `json:"check,omitempty"`
	Definitions []SweepDefinition `json:"definitions"`
	N           int               `json:"n"`         // trials of each cell
	Cells       []SweepCell       `json:"cells"`     // models × definitions × inputs
	Trials      []SweepTrial      `json:"trials"`    // in the order in which they begin
	Complete    bool              `json:"complete"`  // all trials are completed
	Performed   int               `json:"performed"` // trials that this call has begun or gone on with
	// Usage is what all trials used behind the fork point.
	Usage SweepUsage `json:"usage"`
}

// SweepOrigin is the place of a run that the trials are forks of.
type SweepOrigin struct {
	Run    protocol.RunID `json:"run"`
	Step   string         `json:"step"`
	After  bool           `json:"after,omitempty"`
	Seq    protocol.Seq   `json:"seq"`    // the newest event that they share
	Shared SweepUsage     `json:"shared"` // what was used until then, once
}

// SweepDefinition is one of the definitions.
type SweepDefinition struct {
	Name       string `json:"name"` // as it was given
	Definition CID    `json:"definition"`
}

// SweepUsage is what model calls used. CostUSD is null where a price is unknown.
type SweepUsage struct {
	Calls   int      `json:"calls"`
	Input   int64    `json:"input"`  // tokens
	Cached  int64    `json:"cached"` // of them
	Output  int64    `json:"output"`
	CostUSD *float64 `json:"cost_usd"`
}

// Add adds what others used.
func (u *SweepUsage) Add(x SweepUsage) {
	u.Calls += x.Calls
	u.Input += x.Input
	u.Cached += x.Cached
	u.Output += x.Output
	if u.CostUSD == nil || x.CostUSD == nil {
		u.CostUSD = nil
		return
	}
	u.CostUSD = new(math.Round((*u.CostUSD+*x.CostUSD)*1e12) / 1e12) // whole pico-dollars, as prices are
}

// SweepCell is what became of the trials of one model, definition and inputs.
type SweepCell struct {
	Models     map[string]string `json:"models"`     // by role, "" is every role; empty: as the definition says
	Definition int               `json:"definition"` // of Sweep.Definitions
	Inputs     protocol.JSON     `json:"inputs"`     // those that vary, or were given
	Pass       PassRate          `json:"pass"`       // of completed trials
	Errors     int               `json:"errors"`     // trials that say nothing: they could not begin, were cancelled, wait, or the check could not tell
	Cut        int               `json:"cut"`        // trials that a limit ended, or did not let begin
	Open       int               `json:"open"`       // trials that have not ended
	Score      *float64          `json:"score"`      // the mean of what the check told; null where it told none
	Scores     int               `json:"scores"`     // completed trials of which it told one
	Usage      SweepUsage        `json:"usage"`      // behind the fork point, of all of its trials
	MeanMS     int64             `json:"mean_ms"`    // active time of a completed trial
}

// SweepState is how a trial stands.
type SweepState string

// The states of a trial.
const (
	SweepOpen   SweepState = "open"
	SweepRuns   SweepState = "runs"
	SweepPassed SweepState = "passed"
	SweepFailed SweepState = "failed"
	SweepError  SweepState = "error"
	SweepCut    SweepState = "cut"
)

// Completed reports whether a trial says something of its cell.
func (s SweepState) Completed() bool { return s == SweepPassed || s == SweepFailed }

// SweepTrial is one of the runs.
type SweepTrial struct {
	Cell       int                `json:"cell"` // of Sweep.Cells
	N          int                `json:"n"`    // in its cell, from 1
	State      SweepState         `json:"state"`
	Run        protocol.RunID     `json:"run,omitempty"`
	Status     protocol.RunStatus `json:"status,omitempty"` // of the run
	Exit       *int               `json:"exit,omitempty"`   // of the check
	Score      *float64           `json:"score,omitempty"`
	Why        string             `json:"why,omitempty"`
	Usage      SweepUsage         `json:"usage"`                // behind the fork point
	MS         int64              `json:"ms"`                   // active time, behind the fork point
	Scripted   bool               `json:"scripted,omitempty"`   // a script or tape answered for a model
	Remembered bool               `json:"remembered,omitempty"` // of an earlier call
}

// SweepEvent is a line of wf sweep -o jsonl: the whole at the beginning, each trial that began, went on or ended, and the whole at
// the end.
type SweepEvent struct {
	Type  string      `json:"type"` // begin, trial or sweep
	Trial *SweepTrial `json:"trial,omitempty"`
	Sweep *Sweep      `json:"sweep,omitempty"`
}

// Sum tells what became of the trials of each cell, and what all used.
func (s *Sweep) Sum() {
	type sums struct {
		passed, completed int
		scripted          bool
		score             float64
		ms                int64
	}
	of := make([]sums, len(s.Cells))
	zero := SweepUsage{CostUSD: new(0.0)}
	s.Usage, s.Complete = zero, true
	for i := range s.Cells {
		c := &s.Cells[i]
		c.Errors, c.Cut, c.Open, c.Scores, c.Score, c.Usage, c.MeanMS = 0, 0, 0, 0, nil, zero, 0
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		c, x := &s.Cells[t.Cell], &of[t.Cell]
		s.Usage.Add(t.Usage)
		c.Usage.Add(t.Usage)
		switch t.State {
		case SweepError:
			c.Errors++
		case SweepCut:
			c.Cut++
		case SweepOpen, SweepRuns:
			c.Open++
		}
		if !t.State.Completed() {
			s.Complete = false
			continue
		}
		x.completed++
		x.ms += t.MS
		x.scripted = x.scripted || t.Scripted
		if t.State == SweepPassed {
			x.passed++
		}
		if t.Score != nil {
			c.Scores++
			x.score += *t.Score
		}
	}
	for i, x := range of {
		c := &s.Cells[i]
		c.Pass = NewPassRate(x.passed, x.completed, !x.scripted)
		if c.Scores > 0 {
			c.Score = new(x.score / float64(c.Scores))
		}
		if x.completed > 0 {
			c.MeanMS = x.ms / int64(x.completed)
		}
	}
}
