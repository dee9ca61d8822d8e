package api

import (
	"encoding/json"
	"wf/protocol"
)

// Workflow is one that can be started.
type Workflow struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	File        string          `json:"file"`                      // path, as it is recorded with its runs
	Inputs      json.RawMessage `json:"inputs"`                    // JSON Schema of an object
	Schedule    *string         `json:"schedule"`                  // cron expression, or null
	Problem     string          `json:"problem"`                   // why it cannot be started, "" if it can
	Definition  string          `json:"definition,omitempty"`      // CID, of a valid one
	Waits       bool            `json:"waits_for_trust,omitempty"` // it is not started before a person trusts it
}

// Query chooses runs. The zero Query is the newest ones.
type Query struct {
	Status   protocol.RunStatus
	Workflow string
	Tag      string
	Text     string         // stands in the id, workflow, title, description or a tag; any case
	Limit    int            // at most; 1…MaxLimit
	Before   protocol.RunID // only runs that moved earlier than this one
	All      bool           // those of sub-workflows too
}

// How many runs are listed.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// Start is what a run is started with.
type Start struct {
	Workflow    string                     `json:"workflow"` // name or file of one that Workflows lists
	Inputs      map[string]json.RawMessage `json:"inputs"`
	Title       string                     `json:"title"`
	Description string                     `json:"description"`
	Type        string                     `json:"type"`
	Scope       string                     `json:"scope"`
	Tags        []string                   `json:"tags"`
	CreatedBy   string                     `json:"created_by"`
	TargetUser  string                     `json:"target_user"`
	RequestID   string                     `json:"request_id"`
	Models      map[string]ModelList       `json:"models"`  // by role, "" is every role
	Context     string                     `json:"context"` // how agents see their past: conversation, task, fresh; "" is as their roles say

	AllowSecretInputs []string `json:"allow_secret_inputs"` // inputs that may hold a secret, which then is stored, shown and sent
}

// ModelList is models that are tried in order; one may stand alone.
type ModelList []string

// UnmarshalJSON reads "a" and ["a","b"].
func (m *ModelList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*m = ModelList{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(m))
}

// Answer is a reply to a waiting visit.
type Answer struct {
	Step   string          `json:"step"`   // gate#1; "" where only one visit waits
	Signal string          `json:"signal"` // instead of step: what waits for this signal
	Text   string          `json:"text"`
	Choice string          `json:"choice"` // value or label
	Fields json.RawMessage `json:"fields"` // of a form, an object
	// Shown is that of what waits, as it was shown: another tool call by now is not answered. "" takes
	// whatever waits.
	Shown string `json:"shown"`
	// Source is where the answer comes from, kept with it: cli, terminal. What comes over HTTP is http.
	Source string `json:"-"`
}

// Resume says how a run is gone on with.
type Resume struct {
	// Limits by name, raised to: steps, tokens, cost_usd in dollars, duration as in 30m.
	Limits map[string]json.RawMessage `json:"limits"`
}

// Fork says where a fork begins.
type Fork struct {
	Step  string `json:"step"`
	After bool   `json:"after"` // keep the step, go on behind it
	Note  string `json:"note"`
	// Models by role, "" is every role, from here on; none leaves them.
	Models map[string]ModelList `json:"models"`
}

// Message is a text from elsewhere.
type Message struct {
	Source string `json:"source"` // who says it: mail, slack, a name
	Text   string `json:"text"`
}

// Cancel says why.
type Cancel struct {
	Reason string `json:"reason"`
}

// MaxSteps is how many steps one answer has at most, and where no limit is given.
const MaxSteps = 1000

// Started is wf.started/v1.
type Started struct {
	Schema string         `json:"schema"`
	ID     protocol.RunID `json:"id"`
	Fresh  bool           `json:"fresh"` // false: the request id was used before, nothing was started
}

// Accepted is wf.accepted/v1: what was asked for is durable.
type Accepted struct {
	Schema string         `json:"schema"`
	ID     protocol.RunID `json:"id"`   // of the run; of the new one for a fork
	Step   *string        `json:"step"` // that was answered, else null
}
