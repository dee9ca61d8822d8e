package api

import (
	"slices"

	"wf/protocol"
)

// Step is one visit of a role.
type Step struct {
	ID         string              `json:"id"` // coder#2, or coder#1[0] for an item of a fan-out
	Role       string              `json:"role"`
	Action     protocol.Action     `json:"action"`
	Visit      int                 `json:"visit"`
	Item       *int                `json:"item,omitempty"`
	CID        *CID                `json:"cid"`             // of its record; null until it has ended
	Status     string              `json:"status"`          // ok, failed, skipped; running, queued, waiting, parked, retrying
	Began      protocol.Seq        `json:"began,omitempty"` // its first event
	Ended      protocol.Seq        `json:"ended,omitempty"` // its last event; left out while it goes on
	Parents    []CID               `json:"parents"`
	Resumes    *CID                `json:"resumes"` // the visit whose conversation goes on
	Edge       int                 `json:"edge"`    // index in the definition
	Via        protocol.Via        `json:"via"`
	EdgePrompt string              `json:"edge_prompt"`
	Output     protocol.JSON       `json:"output"`
	Text       string              `json:"text"`
	Error      *protocol.ErrorInfo `json:"error"`
	Attempts   []Attempt           `json:"attempts"`
	ToolCalls  int                 `json:"tool_calls"`
	Usage      protocol.UsageSum   `json:"usage"`
	MS         int64               `json:"ms"`
	Workspace  *protocol.GitState  `json:"workspace"`
	Child      protocol.RunID      `json:"child,omitempty"` // the run of a sub-workflow
	// Held says what keeps a visit back that runs, and waits for the limits of a provider.
	Held string `json:"held,omitempty"`
	// Compactions are in order; each took the place of what was read before it.
	Compactions []Compaction `json:"compactions,omitempty"`
	// Corrections are why answers did not fit the declared output, one for each that the model was
	// sent.
	Corrections []string `json:"corrections,omitempty"`
	// Queue is set while the step waits for a slot of the concurrency group of its role.
	Queue *QueuePlace `json:"queue,omitempty"`
	// Artifacts is the tree of the files that the step keeps; left out where there are none.
	Artifacts *CID `json:"artifacts,omitempty"`
	// Reuse says of a role with cache whether an earlier result was taken, and why not; left out for other roles.
	Reuse *Reuse `json:"reuse,omitempty"`
	// CutOff is set where the newest reply has as many tokens as it may have, and so no end.
	CutOff bool `json:"cut_off,omitempty"`
	// Tools and Inject are blocks: the tools that were offered, what was put at the tail of the
	// first request. Undefined without, and where the run was read over HTTP.
	Tools  protocol.Link `json:"-"`
	Inject protocol.Link `json:"-"`
}

// States of a step by which a Window chooses: its status, and what that does not say apart from it.
const (
	StepRunning = "running"
	StepHeld    = "held"    // it runs, and waits for the limits of a provider
	StepQueued  = "queued"  // for a slot of a concurrency group
	StepNonzero = "nonzero" // ok, of a command that exited with another code than 0
	StepCutOff  = "cut_off" // ok, and its answer has no end
)

// StepStates are all states of a step; each step has one of them.
var StepStates = []string{string(protocol.StepOK), StepNonzero, StepCutOff, string(protocol.StepFailed), string(protocol.StepSkipped),
	StepRunning, StepHeld, StepQueued, "waiting", "retrying", "parked"}

// FanTally is how many items of a fan-out have each state, in the whole run.
type FanTally struct {
	ID     string         `json:"id"`     // of the visit: check#1 of check#1[7]
	Items  int            `json:"items"`  // those that have not begun included
	States map[string]int `json:"states"` // items that began, by state
	// Exits are how many items of state nonzero exited with each code.
	Exits map[string]int `json:"exits,omitempty"`
	Began protocol.Seq   `json:"began"`           // the step_started of the first item
	Ended protocol.Seq   `json:"ended,omitempty"` // the step_completed that came last
}

// StepOdd reports whether a step of a state, one of StepStates, wants to be looked at.
func StepOdd(state string) bool {
	return !slices.Contains([]string{string(protocol.StepOK), string(protocol.StepSkipped), StepRunning, StepQueued, StepHeld}, state)
}

// Reuse is what became of reusing the result of a visit.
type Reuse struct {
	Key      string `json:"key,omitempty"`       // of all that the result follows from
	From     string `json:"from,omitempty"`      // RUN:STEP with the result that was taken; left out where the visit was performed
	Memo     CID    `json:"memo,omitempty"`      // of that result
	Files    int    `json:"files,omitempty"`     // that it changed
	SparedMS int64  `json:"spared_ms,omitempty"` // that performing it took
	// Why the visit was performed: none, differs, conflict, expired, lost, off or cannot.
	Why      string `json:"why,omitempty"`
	Part     string `json:"part,omitempty"`     // the first thing that differs from Compared, or the path that is in the way
	Compared string `json:"compared,omitempty"` // RUN:STEP
	Reason   string `json:"reason,omitempty"`   // Why in a sentence
	// NotStored says why the own result is not kept for others.
	NotStored string `json:"not_stored,omitempty"`
}

// RunStep is a visit with the run that it is of: wf.step/v1.
type RunStep struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	*Step
}

// Attempt is one try of a visit.
type Attempt struct {
	Attempt int                 `json:"attempt"` // from 1
	Started Time                `json:"started"`
	Error   *protocol.ErrorInfo `json:"error"`
	RetryAt *Time               `json:"retry_at,omitempty"`
	Usage   protocol.UsageSum   `json:"usage"`
}

// Compaction is what a visit replaced by a summary. The originals stay: replay and the records
// have them.
type Compaction struct {
	Scope        protocol.CompactScope `json:"scope"`
	Record       *CID                  `json:"record"`            // the Compaction of a conversation
	Covers       int                   `json:"covers,omitempty"`  // conversation: visits up to this one are in the summary
	Prior        int                   `json:"prior,omitempty"`   // those after it up to this one stay whole
	Replies      int                   `json:"replies,omitempty"` // visit: oldest replies, with their results, in the summary
	Summary      string                `json:"summary"`
	Model        string                `json:"model"` // that wrote it; "" for an extract
	Error        string                `json:"error,omitempty"`
	TokensBefore int64                 `json:"tokens_before"`
	TokensAfter  int64                 `json:"tokens_after"` // estimated
}
