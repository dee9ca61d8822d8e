package api

import "wf/protocol"

// Backfill is wf.backfill/v1: the firings of a schedule within a time, and what became of them.
type Backfill struct {
	Schema   string   `json:"schema"`
	Workflow string   `json:"workflow"`
	From     Time     `json:"from"`
	To       Time     `json:"to"`
	Firings  []Firing `json:"firings"` // the oldest first
}

// Firing is a minute at which a schedule is due.
type Firing struct {
	Due   Time           `json:"due"`
	Run   protocol.RunID `json:"run"`   // that it has, or would have
	State FiringState    `json:"state"` // what became of it
	// Status is that of the run, where there is one.
	Status protocol.RunStatus `json:"status,omitempty"`
	Error  *protocol.Error    `json:"error,omitempty"` // why it was not started
}

// FiringState is what became of a firing.
type FiringState string

// The states of a firing.
const (
	FiringMissed  FiringState = "missed"  // no run of it was ever started
	FiringBefore  FiringState = "before"  // it was started before
	FiringDeleted FiringState = "deleted" // it was started before, and its run was deleted
	FiringStarted FiringState = "started" // it was started now
	FiringFailed  FiringState = "failed"  // it could not be started
)
