package api

import "wf/protocol"

// Diff compares two runs: wf.diff/v1.
type Diff struct {
	Schema     string         `json:"schema"`
	Left       protocol.RunID `json:"left"`
	Right      protocol.RunID `json:"right"`
	Equal      bool           `json:"equal"`
	Steps      []StepDiff     `json:"steps"`
	Definition []string       `json:"definition"` // paths that differ
	Inputs     []string       `json:"inputs"`     // paths that differ
}

// StepDiff compares two visits of one name.
type StepDiff struct {
	ID      string   `json:"id"`
	How     string   `json:"how"` // equal, changed, left, right
	Left    *CID     `json:"left"`
	Right   *CID     `json:"right"`
	Changed []string `json:"changed"`           // what differs, in words
	Unified string   `json:"unified,omitempty"` // unified diff of the texts
}

// VisitDiff compares the outputs of two visits of a role: wf.diff/v1.
type VisitDiff struct {
	Schema   string         `json:"schema"`
	Run      protocol.RunID `json:"run"`
	Step     string         `json:"step"`
	Previous *string        `json:"previous"` // null for the first visit: all of it is new
	Equal    bool           `json:"equal"`
	Added    int            `json:"added"` // lines
	Removed  int            `json:"removed"`
	Changed  []string       `json:"changed"` // what differs, in words
	Unified  string         `json:"unified"` // of the texts
}
