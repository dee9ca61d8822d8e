package api

import "wf/protocol"

// Adoptable is a run that came from elsewhere, as wf store adopt lists it.
type Adoptable struct {
	ID       protocol.RunID     `json:"id"`
	Workflow string             `json:"workflow"`
	Status   protocol.RunStatus `json:"status"`
	Why      string             `json:"why"`              // foreign_run or rolled_back
	Runs     []string           `json:"runs"`             // its commands, and its agents that run commands without a sandbox
	Parent   *string            `json:"parent,omitempty"` // RUN:STEP of a sub-workflow
}
