package api

import "wf/protocol"

// Explanation is why a step was entered: wf.explain/v1.
type Explanation struct {
	Schema     string         `json:"schema"`
	Run        protocol.RunID `json:"run"`
	Step       string         `json:"step"`
	Edge       int            `json:"edge"` // index in the definition
	Via        protocol.Via   `json:"via"`
	EdgePrompt string         `json:"edge_prompt"`
	Parents    []CID          `json:"parents"`
	Tried      []Tried        `json:"tried"`
	Bounds     []Bound        `json:"bounds"`
	Cache      *Reuse         `json:"cache,omitempty"` // of a role with cache
}

// Tried is one edge that was looked at.
type Tried struct {
	Edge  int      `json:"edge"`
	From  []string `json:"from"`
	To    []string `json:"to"`
	When  string   `json:"when"`
	Holds bool     `json:"holds"`
	Taken bool     `json:"taken"`
	Join  bool     `json:"join"` // the token waits here for others, whatever the conditions say
	// OnLimit is where the token went instead, because a bound was reached.
	OnLimit string `json:"on_limit,omitempty"`
	Error   string `json:"error,omitempty"`
	Terms   []Term `json:"terms"`
}

// Term is a part of a condition with its value, as JSON.
type Term struct {
	Source string `json:"source"`
	Value  any    `json:"value"`
	Error  string `json:"error,omitempty"`
}

// Bound is a limit along the branch, with what was counted before the visit.
type Bound struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	Max     int    `json:"max"`
	Reached bool   `json:"reached"`
}

// RunExplanation is why a run ended, or is where it is: wf.explain_run/v1.
type RunExplanation struct {
	Schema    string                 `json:"schema"`
	Run       protocol.RunID         `json:"run"`
	Status    protocol.RunStatus     `json:"status"`
	Closing   protocol.RunStatus     `json:"closing,omitempty"` // what the run ends as, while its always roles run
	Reason    string                 `json:"reason"`
	Suspended protocol.SuspendReason `json:"suspended_by,omitempty"`
	Cause     *Cause                 `json:"cause,omitempty"` // of a run that failed, or closes as failed
	Child     protocol.RunID         `json:"child,omitempty"` // the run of the sub-workflow that the step of cause performed
	Way       *Explanation           `json:"way,omitempty"`   // of a run that failed: why the first step was entered from which nothing but FAIL could be reached; of one that goes on: why the first of open was
	Open      []OpenStep             `json:"open"`            // the steps that have not ended, in the order in which they began; at most 100
	Lacking   []string               `json:"lacking"`         // joins that wait, and for which roles
	// Routings are those of the tokens that stay: what led the run to its end, or keeps it; at most 100, the one that led to FAIL first.
	Routings      []Routing `json:"routings"`
	RoutingsTotal int       `json:"routings_total"`
}

// OpenStep is a step that has not ended.
type OpenStep struct {
	Step   string `json:"step"`
	Status string `json:"status"`          // running, waiting, retrying or parked
	Error  string `json:"error,omitempty"` // of its newest attempt that failed
}

// Routing is what became of a token: the edges that were tried for it in order, with what they saw.
type Routing struct {
	From   []string `json:"from"`   // the steps whose token it is; of a join all of its sources
	Failed bool     `json:"failed"` // a step of it failed
	At     []string `json:"at"`     // END, FAIL or SUSPEND, where an edge led there; empty for a token that waits or that no edge takes
	Tried  []Tried  `json:"tried"`
	Bounds []Bound  `json:"bounds"`
}
