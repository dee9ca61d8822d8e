package api

import (
	"encoding/json"
	"wf/protocol"
)

// Workflow is a workflow that can be started.
type Workflow struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	File        string          `json:"file"`               // path, as it is recorded with its runs
	Inputs      json.RawMessage `json:"inputs"`             // JSON Schema of the inputs, an object
	Schedule    *string         `json:"schedule"`           // cron expression, or null
	Timezone    string          `json:"timezone,omitempty"` // of the schedule; left out it is UTC
	Overlap     string          `json:"overlap,omitempty"`  // of the schedule: skip or queue; left out it is allow
	CatchUp     string          `json:"catch_up,omitempty"` // of the schedule: all or none; left out it is last
	Next        *Time           `json:"next,omitempty"`     // when the clock starts it next
	Firings     string          `json:"firings,omitempty"`  // how the request ids of its firings begin; behind it comes the minute, in RFC 3339
	Webhook     string          `json:"webhook,omitempty"`  // the path that takes its events, as in /v1/hooks/NAME
	// ScheduleProblem is why its schedule starts nothing yet.
	ScheduleProblem string `json:"schedule_problem,omitempty"`
	// WebhookProblem is why its webhook takes no events yet.
	WebhookProblem string `json:"webhook_problem,omitempty"`
	// Stopped is since when its schedule or webhook, which was served, starts nothing: its problem says why.
	Stopped    *Time  `json:"stopped_since,omitempty"`
	Problem    string `json:"problem"`              // why it cannot be started, "" if it can; of a hub also that its workers have different definitions
	Definition CID    `json:"definition,omitempty"` // of a valid one
	// Waits: it is started neither by a client nor by the clock before a person trusts it on that
	// machine, with wf trust.
	Waits  bool     `json:"waits_for_trust,omitempty"`
	Agents []string `json:"agents,omitempty" at:"hub"` // that can start it
}

// Query chooses runs. The zero Query is the newest ones.
type Query struct {
	Status   protocol.RunStatus // one of QueryStatuses; "" is all
	Workflow string
	Type     string // of runs: protocol.ChatType for chats
	Tag      string
	Text     string // stands in the id, workflow, title, description or a tag; any case
	Limit    int    // at most; 1…MaxLimit
	Before   string // only runs behind this place of the list: Next of a page, or RowPlace
	All      bool   // those of sub-workflows too

	Search    string   // words that all occur in what was said in the run
	Since     int64    // unix µs; only runs that moved last then or later; 0 is all
	Until     int64    // unix µs; only runs that moved last then or before; 0 is all
	CostMin   *float64 // USD; a run whose cost is not known fits no bound
	CostMax   *float64
	TokensMin *int64 // input and output
	TokensMax *int64
	Person    string // that it was begun by or for, or that answered in it; any case
	Counts    bool   // with Page.Counts, on the first page
}

// InterruptedRuns is the Status of a Query for the running runs that are listed as interrupted.
const InterruptedRuns = protocol.RunStatus(Interrupted)

// QueryStatuses are the states that a list of runs can be asked for.
var QueryStatuses = []protocol.RunStatus{protocol.Queued, protocol.Running, InterruptedRuns, protocol.Waiting, protocol.Suspended,
	protocol.Done, protocol.Failed, protocol.Cancelled}

// How many runs are listed.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// Start is what a run is started with.
type Start struct {
	Workflow    string                     `json:"workflow"` // name or file of one that is listed; NAME@CID starts only the definition of that CID
	Inputs      map[string]json.RawMessage `json:"inputs,omitempty"`
	Title       string                     `json:"title,omitempty"`
	Description string                     `json:"description,omitempty"`
	Type        string                     `json:"type,omitempty"`
	Scope       string                     `json:"scope,omitempty"`
	Tags        []string                   `json:"tags,omitempty"`
	CreatedBy   string                     `json:"created_by,omitempty"` // over HTTP a claim, kept as claimed_by: the run is of the token's name
	TargetUser  string                     `json:"target_user,omitempty"`
	RequestID   string                     `json:"request_id,omitempty"` // the same id starts nothing twice
	// Firing is a minute at which the schedule of the workflow is due, in RFC 3339: the run is that of the firing, whose
	// request id it has, and is started once. It takes no inputs.
	Firing  string               `json:"firing,omitempty"`
	Models  map[string]ModelList `json:"models,omitempty"`  // by role, "" is every role
	Context string               `json:"context,omitempty"` // how agents see their past: conversation, task, fresh; "" is as their roles say

	// Cache is what the run does about results that can be reused: off reuses none, offline performs nothing that could
	// have been reused; "" reuses them.
	Cache string `json:"cache,omitempty"`

	// Priority in the queue of a hub, from -9 to 9: larger ones are begun first. A server without a queue refuses it.
	Priority int `json:"priority,omitempty"`

	// AllowSecretInputs are inputs that may hold a secret, which then is stored, shown and sent.
	// Without it such inputs are refused.
	AllowSecretInputs []string `json:"allow_secret_inputs,omitempty"`

	// CausedBy is the notification that starts the run, as the header wf-caused-by of a webhook and the
	// variable WF_CAUSED_BY of a command say it: RUN:SEQ:DEPTH.
	CausedBy string `json:"caused_by,omitempty"`
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
	Step   string          `json:"step,omitempty"`   // gate#1; may be left out where only one visit waits
	Signal string          `json:"signal,omitempty"` // instead of step: what waits for this signal
	Text   string          `json:"text,omitempty"`
	Choice string          `json:"choice,omitempty"` // value or label
	Fields json.RawMessage `json:"fields,omitempty"` // of a form, an object
	// Shown is that of the Waiting that was shown: a visit that asks for another tool call by now gives
	// not_waiting (409). Left out, the answer is for whatever waits.
	Shown string `json:"shown,omitempty"`
	// Source is where the answer comes from, kept with it: cli, terminal. What comes over HTTP is http.
	Source string `json:"-"`
}

// Resume says how a run is gone on with.
type Resume struct {
	// Limits by name, raised to: steps, tokens, cost_usd in dollars, duration as in 30m.
	Limits map[string]json.RawMessage `json:"limits,omitempty"`
	// Here has a run whose files are on another machine go on in a copy of them on the machine of the process that is asked.
	Here bool `json:"here,omitempty"`
}

// Fork says where a fork begins, and what differs in it.
type Fork struct {
	Step  string `json:"step,omitempty"`  // without one it is where the run is: behind the step that ended last
	After bool   `json:"after,omitempty"` // keep the step, go on behind it
	Note  string `json:"note,omitempty"`
	// Models by role, "" is every role, from here on; none leaves them.
	Models map[string]ModelList `json:"models,omitempty"`
	// Limits by name, as in Resume.
	Limits map[string]json.RawMessage `json:"limits,omitempty"`
	// With is another definition to go on under. Over HTTP it needs scope admin and is not trusted: a fork under one that
	// runs commands or reaches the network is made with hold alone, and does not go on before wf store adopt.
	With *Definition `json:"with,omitempty"`
	Hold bool        `json:"hold,omitempty"` // make the fork, and do not go on with it

	// Dir is another workspace, as an absolute path, Worktree a clone of the repository at the commit that the step found, and
	// Files a directory of the fork with the files that the run recorded there. They are for the machine of the store: over
	// HTTP they are refused.
	Dir      string `json:"-"`
	Worktree bool   `json:"-"`
	Files    bool   `json:"-"`
}

// Definition is a workflow that is not in the store yet, with the files that it names.
type Definition struct {
	File   string `json:"file"`   // absolute path, as it is recorded with the run
	Source string `json:"source"` // its YAML
	// Files are the texts of its sub-workflows, by absolute path.
	Files map[string]string `json:"files,omitempty"`
}

// Message is a text from elsewhere.
type Message struct {
	Source string `json:"source"` // where it comes from: mail, slack, a name
	Text   string `json:"text"`
}

// Cancel says why a run is cancelled.
type Cancel struct {
	Reason string `json:"reason,omitempty"`
}

// MaxSteps is how many steps one answer has at most, and where no limit is given.
const MaxSteps = 1000

// MaxTexts is how many bytes the prompts, texts and outputs of the steps of one answer have at most, see Window.
const MaxTexts = 8 << 20

// Started is wf.started/v1.
type Started struct {
	Schema string         `json:"schema"`
	ID     protocol.RunID `json:"id"`
	Fresh  bool           `json:"fresh"`                    // false: the request id was used before, nothing was started
	Agent  string         `json:"agent,omitempty" at:"hub"` // that has the run
}

// Accepted is wf.accepted/v1: what was asked for is durable.
type Accepted struct {
	Schema string         `json:"schema"`
	ID     protocol.RunID `json:"id"`            // of the run; of the new one for a fork
	Step   *string        `json:"step"`          // the visit that was answered, else null
	Seq    protocol.Seq   `json:"seq,omitempty"` // of a fork: its newest event, as it was made
	// Warnings are what the user of a fork should know, such as that its workspace is not as the step found it.
	Warnings []string `json:"warnings,omitempty"`
}
