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
