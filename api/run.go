package api

import "wf/protocol"

// RunSchema names the JSON form of a Run.
const RunSchema = "wf.run/v1"

// Run is a run as people and programs see it: wf.run/v1.
type Run struct {
	Schema     string                 `json:"schema"`
	ID         protocol.RunID         `json:"id"`
	Workflow   string                 `json:"workflow"`
	Definition CID                    `json:"definition"`
	Status     protocol.RunStatus     `json:"status"`
	Driving                           // of a running one
	Foreign    bool                   `json:"foreign,omitempty"` // it came from elsewhere (an archive, a clone, a copy of the store that was put back): it is not driven or answered before wf store adopt on that machine
	Closing    protocol.RunStatus     `json:"closing,omitempty"` // what the run ends as, while its always roles run
	Reason     string                 `json:"reason"`
	Cause      *Cause                 `json:"cause,omitempty"` // of a run that failed, or closes as failed: the step with which the way to FAIL began
	Suspended  protocol.SuspendReason `json:"suspended_by,omitempty"`
	Code       string                 `json:"code,omitempty"`           // of the error behind a suspension
	Head       CID                    `json:"head"`                     // of the newest event
	Seq        protocol.Seq           `json:"seq"`                      // of the newest event
	Result     *CID                   `json:"result"`                   // null until the run is done
	Steps      []*Step                `json:"steps"`                    // in the order in which they began; at most 1000, the newest
	Total      int                    `json:"steps_total,omitempty"`    // of the run, where steps is not all of them
	Earlier    protocol.Seq           `json:"earlier,omitempty"`        // before, for the steps before these; left out where there are none
	Matching   *int                   `json:"steps_matching,omitempty"` // how many steps of the run are of the states and the role that were asked for; left out where neither was
	Fans       []FanTally             `json:"fans,omitempty"`           // the fan-outs of the run, where steps of some states or of a role were asked for, or fan-outs as one step
	Roles      []protocol.RoleEntered `json:"roles,omitempty"`          // that were entered, where steps is not all of them
	Ways       []protocol.WayTaken    `json:"ways,omitempty"`           // out of edges that the run took, where steps is not all of them
	Outputs    protocol.JSON          `json:"outputs"`
	Usage      protocol.UsageSum      `json:"usage"`
	CostUSD    *float64               `json:"cost_usd"` // null: unknown
	Started    Time                   `json:"started"`
	Updated    Time                   `json:"updated"` // of the newest event
	Spent
	Timing    Timing      `json:"timing"`
	Scripted  int         `json:"scripted_calls"`
	Reuse     *Reuses     `json:"reuse,omitempty"` // left out where no step took an earlier result
	Waiting   []Waiting   `json:"waiting,omitempty"`
	Queue     *QueuePlace `json:"queue,omitempty"`     // of a queued run: what it waits behind
	Mend      *Mend       `json:"mend,omitempty"`      // of a suspended run whose definition is wrong: how it goes on
	Leftovers []string    `json:"leftovers,omitempty"` // joins of a finished run that still wait, and for which roles

	CleanupFailed []protocol.CleanupFailed `json:"cleanup_failed,omitempty"` // always roles that failed or were skipped; what the run concluded stands
	Forks         []ForkPoint              `json:"forks,omitempty"`          // runs that share events of this one, and up to where; at most 100
	Info          RunInfo                  `json:"info"`
}

// ForkPoint is a run at the other end of a fork, and the last event that both share.
type ForkPoint struct {
	Run protocol.RunID `json:"run"`
	Seq protocol.Seq   `json:"seq"`
}

// Cause is the step with which the way to FAIL began. From the steps behind it nothing else could be reached.
type Cause struct {
	Step   string              `json:"step"`
	Failed bool                `json:"failed"`          // false: its output, or a bound, chose the way to FAIL
	Error  *protocol.ErrorInfo `json:"error,omitempty"` // of a step that failed
	Road   []string            `json:"road"`            // the steps between it and FAIL
	Way    string              `json:"way,omitempty"`   // the first step from which nothing but FAIL could be reached; left out where there is none
}

// Reuses says what became of the steps of a run that took earlier results, and of the others. A step that only takes values
// over, and an empty fan-out, is neither.
type Reuses struct {
	Performed int `json:"performed"` // steps that were performed and have ended; 0: nothing was
	Reused    int `json:"reused"`    // steps that took an earlier result
	// From are the runs that performed what was taken, as far as steps of the run are shown.
	From []protocol.RunID `json:"from"`
}

// Count is the number of steps of the run, those that are not in r.Steps included.
func (r *Run) Count() int { return max(r.Total, len(r.Steps)) }

// RunInfo is what a run was started with.
type RunInfo struct {
	Title       string              `json:"title"`
	Description string              `json:"description"`
	Type        string              `json:"type"`
	Scope       string              `json:"scope"`
	Tags        []string            `json:"tags"`
	CreatedBy   string              `json:"created_by"`           // the user, or the name of the token by which a client started it
	ClaimedBy   string              `json:"claimed_by,omitempty"` // the name that the client sent, where it differs; it has no effect
	TargetUser  string              `json:"target_user"`
	RequestID   string              `json:"request_id"`
	Workspace   string              `json:"workspace"`
	Machine     string              `json:"machine,omitempty"` // that workspace is on, where that is another one than that of the process which is asked
	File        string              `json:"file"`
	Parent      *protocol.ParentRun `json:"parent"`
	ForkedFrom  *CID                `json:"forked_from"`       // the newest event that both runs share
	ForkOf      *ForkPoint          `json:"fork_of,omitempty"` // the run that a fork shares its events with, and up to where; left out where that is not in the store
	Inputs      protocol.JSON       `json:"inputs"`
	Trigger     *protocol.Trigger   `json:"trigger,omitempty"`   // what began it; left out where a person or a client did
	CausedBy    *protocol.CausedBy  `json:"caused_by,omitempty"` // the notification that started the run
}

// A Window chooses steps of a run. The zero Window is all of them.
type Window struct {
	Limit  int          // at most so many, the newest; 0 is all
	Before protocol.Seq // only steps that began before this event; 0 is all
	At     protocol.Seq // the run as it was after this event; 0 is now, as is one that has not come yet
	// States leaves out steps of other states than these, of StepStates; nil is all. Role leaves out those of other roles; "" is
	// all. What the answer says of the run is of all of its steps.
	States []string
	Role   string
	// Fold has a fan-out with more items than this count as one step, which began with its first item: of its items the first is given,
	// and FoldOdd of those that want to be looked at. Fans tells of all of them. 0 gives each.
	Fold int
	// Bytes bounds the prompts, texts and outputs of the steps together: older steps are left out, and Earlier says
	// where they are. One step is given however long it is; 0 is no bound.
	Bytes int
}

// FoldOdd is how many items of a folded fan-out are given that want to be looked at.
const FoldOdd = 10

// Chooses reports whether the steps are chosen by what they are, and not by their place alone.
func (w Window) Chooses() bool { return len(w.States) > 0 || w.Role != "" }

// Timing says what the time of visits of agents and commands went into, waiting for people
// and timers left out. ttfe, thinking and tools add up to the total, and the percentages to 100 where
// there is any time.
type Timing struct {
	TotalMS     int64 `json:"total_ms"`
	TTFEMS      int64 `json:"ttfe_ms"`     // until the model's first event, once for each visit
	ThinkingMS  int64 `json:"thinking_ms"` // the rest
	ToolsMS     int64 `json:"tools_ms"`    // in which a tool or command ran; side by side counts once
	ToolCalls   int   `json:"tool_calls"`
	TTFEPct     int64 `json:"ttfe_pct"`
	ThinkingPct int64 `json:"thinking_pct"`
	ToolsPct    int64 `json:"tools_pct"`
}

// Mend is how a suspended run goes on once its definition was corrected: as a fork, under the
// corrected one.
type Mend struct {
	Step  string `json:"step"`            // the step to fork at; "" is the beginning: the run is started anew
	After bool   `json:"after,omitempty"` // keep the step and go on behind it
}

// Waiting is what a run waits for.
type Waiting struct {
	Step     string            `json:"step"`
	Kind     protocol.WaitKind `json:"kind"`
	Question string            `json:"question"` // for a signal, its name
	Choices  []protocol.Choice `json:"choices"`
	Form     protocol.JSON     `json:"form,omitempty"` // JSON Schema of the fields to fill in
	Due      *Time             `json:"due"`            // of a timer, and of a question that is to be answered by then
	// Shown is the digest of the tool call that question shows. Choices are allow, allow_run (exactly
	// this call, until the run ends; not always offered) and deny, whose text is the reason.
	Shown string `json:"shown,omitempty"`

	OnTimeout string   `json:"on_timeout,omitempty"` // what happens then to a question: the value of a choice, fail or escalate
	Remind    []Time   `json:"remind,omitempty"`     // when it is called to mind
	Assignees []string `json:"assignees,omitempty"`  // the names whose authenticated answers count; none is anyone
	Escalated int      `json:"escalated,omitempty"`  // how often it was put to further people
}
