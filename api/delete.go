package api

import "wf/protocol"

// Delete says why a run is deleted.
type Delete struct {
	Why    string // kept in the tombstone
	DryRun bool   // tell what would be deleted, and change nothing
}

// Deleted is what was deleted, or would be: wf.deleted/v1.
type Deleted struct {
	Schema string           `json:"schema"`
	DryRun bool             `json:"dry_run"`
	ID     protocol.RunID   `json:"id"`
	Runs   []protocol.RunID `json:"runs"` // with those of its sub-workflows
	By     string           `json:"by"`
	At     Time             `json:"at"`
	Why    string           `json:"why"`
	// Held is what still has parts of the run, which are not removed from it.
	Held []Holder `json:"held"`
}

// Deletions are the runs that were deleted: wf.deletions/v1.
type Deletions struct {
	Schema string     `json:"schema"`
	Items  []Deletion `json:"items"`          // the last one first
	Next   string     `json:"next,omitempty"` // Part.After of those behind these; "" at the end
}

// Deletion is what is left of a run that was deleted. Nothing of what it was about is kept.
type Deletion struct {
	Run protocol.RunID `json:"run"`
	Seq protocol.Seq   `json:"seq"` // of its newest event
	By  string         `json:"by"`
	At  Time           `json:"at"`
	Why string         `json:"why"`
}

// Holder has parts of a run that was deleted.
type Holder struct {
	What  string `json:"what"`  // fork, or backup
	Name  string `json:"name"`  // of the run, or the directory
	Bytes int64  `json:"bytes"` // of the blocks that a fork shares with the run; of the whole backup
}
