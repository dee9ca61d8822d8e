package api

import "wf/protocol"

// BisectSchema names the JSON form of a Bisect.
const BisectSchema = "wf.bisect/v1"

// Bisect is wf.bisect/v1: the edits of a definition that break a check, and the trials that showed it.
type Bisect struct {
	Schema   string          `json:"schema"`
	Versions []BisectVersion `json:"versions"` // as they were given: the first is good, the last bad
	Good     int             `json:"good"`     // the last good version that was found, counted from 0
	Bad      int             `json:"bad"`      // the first bad one
	Edits    []Edit          `json:"edits"`    // between those two
	// Minimal are the edits that break the check together, by their place in Edits: without any single one of them it is
	// not broken. null where the search was not completed.
	Minimal   []int    `json:"minimal"`
	Complete  bool     `json:"complete"`
	Check     string   `json:"check,omitempty"` // the command; left out where the outcome of the run decides
	Trials    []Trial  `json:"trials"`          // in their order
	Runs      int      `json:"runs"`            // of all trials
	Steps     int      `json:"steps"`           // of those runs
	Performed int      `json:"performed"`       // steps of this call; the others were performed before
	CostUSD   *float64 `json:"cost_usd"`        // of all trials; null: unknown
}

// BisectVersion is one of the definitions that were given.
type BisectVersion struct {
	Name       string  `json:"name"` // as it was given
	Definition CID     `json:"definition"`
	Verdict    Verdict `json:"verdict,omitempty"` // left out where it was not tried
}

// Edit is one difference between two definitions.
type Edit struct {
	Key  string `json:"key"`  // such as roles.coder.prompt
	Kind string `json:"kind"` // added, removed, changed or moved
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
	Line string `json:"line"` // both in one line, cut
}

// Verdict is what a check says of a definition.
type Verdict string

// The verdicts.
const (
	Good       Verdict = "good"
	Bad        Verdict = "bad"
	Unresolved Verdict = "unresolved" // neither: it does not lint, the check cannot tell, or it tells both
)

// Trial is a definition that was tried: a version, or the good one with some edits.
type Trial struct {
	Version    *int       `json:"version,omitempty"` // of Bisect.Versions
	Edits      []int      `json:"edits,omitempty"`   // of Bisect.Edits, where it is no version
	Definition CID        `json:"definition,omitempty"`
	Verdict    Verdict    `json:"verdict"`
	Why        string     `json:"why,omitempty"` // it is that
	Runs       []TrialRun `json:"runs,omitempty"`
}

// TrialRun is a run of a trial, and what the check said of it.
type TrialRun struct {
	Run        protocol.RunID     `json:"run"`
	Status     protocol.RunStatus `json:"status"`
	Exit       *int               `json:"exit,omitempty"` // of the check
	Verdict    Verdict            `json:"verdict"`
	Steps      int                `json:"steps"`
	CostUSD    *float64           `json:"cost_usd"`             // null: unknown
	Remembered bool               `json:"remembered,omitempty"` // of an earlier call
}
