package engine

import "wf/protocol"

// RunSchema names the JSON form of a View.
const RunSchema = "wf.run/v1"

// View is a run as people and programs see it: wf.run/v1.
type View struct {
	Schema     string                 `json:"schema"`
	ID         protocol.RunID         `json:"id"`
	Workflow   string                 `json:"workflow"`
	Definition string                 `json:"definition"`
	Status     protocol.RunStatus     `json:"status"`
	Driving                           // of a running one
	Foreign    bool                   `json:"foreign,omitempty"` // it came from elsewhere: it goes on only once it was adopted
	Reason     string                 `json:"reason"`
	Suspended  protocol.SuspendReason `json:"suspended_by,omitempty"`
	Code       string                 `json:"code,omitempty"` // of the Error behind a suspension
	Head       string                 `json:"head"`
	Seq        protocol.Seq           `json:"seq"`
	Result     *string                `json:"result"`
	Steps      []*StepView            `json:"steps"`                 // in the order in which they began; see Window
	Total      int                    `json:"steps_total,omitempty"` // where Steps is not all of them
	Earlier    protocol.Seq           `json:"earlier,omitempty"`     // Window.Before of the steps before these; 0 is that there are none
	Roles      []RoleView             `json:"roles,omitempty"`       // that were entered, where Steps is not all
	Ways       []WayView              `json:"ways,omitempty"`        // that were taken, where Steps is not all
	Outputs    protocol.JSON          `json:"outputs"`
	Usage      UsageView              `json:"usage"`
	CostUSD    *float64               `json:"cost_usd"` // null: unknown
	Started    string                 `json:"started"`
	Updated    string                 `json:"updated"`
	ActiveMS   int64                  `json:"active_ms"`
	Timing     Timing                 `json:"timing"`
	Scripted   int                    `json:"scripted_calls"`
	Waiting    []WaitingView          `json:"waiting,omitempty"`
	Mend       *Mend                  `json:"mend,omitempty"`      // of a suspended run whose definition is wrong
	Leftovers  []string               `json:"leftovers,omitempty"` // joins of a finished run that still wait, and for whom
	Info       InfoView               `json:"info"`
}

// Count is the number of steps of the run, those that are not in v.Steps included.
func (v *View) Count() int { return max(v.Total, len(v.Steps)) }

// InfoView is what a run was started with.
type InfoView struct {
	Title       string              `json:"title"`
	Description string              `json:"description"`
	Type        string              `json:"type"`
	Scope       string              `json:"scope"`
	Tags        []string            `json:"tags"`
	CreatedBy   string              `json:"created_by"`
	TargetUser  string              `json:"target_user"`
	RequestID   string              `json:"request_id"`
	Workspace   string              `json:"workspace"`
	File        string              `json:"file"`
	Parent      *protocol.ParentRun `json:"parent"`
	ForkedFrom  *string             `json:"forked_from"`
	Inputs      protocol.JSON       `json:"inputs"`
}

// StepView is one visit.
type StepView struct {
	ID         string              `json:"id"`
	Role       string              `json:"role"`
	Action     protocol.Action     `json:"action"`
	Visit      int                 `json:"visit"`
	Item       *int                `json:"item,omitempty"`
	CID        *string             `json:"cid"`
	Status     string              `json:"status"`          // ok, failed, skipped; running, waiting, parked, retrying
	Began      protocol.Seq        `json:"began,omitempty"` // its first event
	Ended      protocol.Seq        `json:"ended,omitempty"` // its last event; 0 while it goes on
	Parents    []string            `json:"parents"`
	Resumes    *string             `json:"resumes"`
	Edge       int                 `json:"edge"`
	Via        protocol.Via        `json:"via"`
	EdgePrompt string              `json:"edge_prompt"`
	Output     protocol.JSON       `json:"output"`
	Text       string              `json:"text"`
	Error      *protocol.ErrorInfo `json:"error"`
	Attempts   []AttemptView       `json:"attempts"`
	ToolCalls  int                 `json:"tool_calls"`
	Usage      UsageView           `json:"usage"`
	MS         int64               `json:"ms"`
	Workspace  *protocol.GitState  `json:"workspace"`
	Child      protocol.RunID      `json:"child,omitempty"` // the run of a sub-workflow
	// Compactions are in order; each took the place of what was read before it.
	Compactions []CompactionView `json:"compactions,omitempty"`
	// Corrections are why answers did not fit the declared output, one for each that the model was
	// told of.
	Corrections []string `json:"corrections,omitempty"`
	// CutOff is set where the newest reply has as many tokens as it may have, and so no end.
	CutOff bool `json:"cut_off,omitempty"`
	// Tools and Inject are blocks: the tools that were offered, what was put at the tail of the
	// first request. null without.
	Tools  protocol.Link `json:"-"`
	Inject protocol.Link `json:"-"`

	record    protocol.Link
	concluded protocol.StepStatus // as the event says that names the record; "" in old journals
}

// AttemptView is one try of a visit.
type AttemptView struct {
	Attempt int                 `json:"attempt"`
	Started string              `json:"started"`
	Error   *protocol.ErrorInfo `json:"error"`
	RetryAt *string             `json:"retry_at,omitempty"`
	Usage   UsageView           `json:"usage"`
}

// UsageView sums model calls; what no provider told is null.
type UsageView struct {
	Calls        int    `json:"calls"`
	Input        *int64 `json:"input"`
	Cached       *int64 `json:"cached"`
	CacheWrite5m *int64 `json:"cache_write_5m"`
	CacheWrite1h *int64 `json:"cache_write_1h"`
	Output       *int64 `json:"output"`
	Reasoning    *int64 `json:"reasoning"`
}

// WaitingView is what a run waits for.
type WaitingView struct {
	Step     string            `json:"step"`
	Kind     protocol.WaitKind `json:"kind"`
	Question string            `json:"question"`
	Choices  []protocol.Choice `json:"choices"`
	Form     protocol.JSON     `json:"form,omitempty"` // JSON Schema of the fields to fill in
	Due      *string           `json:"due"`
	Shown    string            `json:"shown,omitempty"` // digest of the tool call that Question shows
}

func (u *UsageView) add(x protocol.Usage) {
	u.Calls++
	sum := func(to **int64, n *int64) {
		if n == nil {
			return
		}
		if *to == nil {
			*to = new(int64)
		}
		**to += *n
	}
	sum(&u.Input, x.Input)
	sum(&u.Cached, x.Cached)
	sum(&u.CacheWrite5m, x.CacheWrite5m)
	sum(&u.CacheWrite1h, x.CacheWrite1h)
	sum(&u.Output, x.Output)
	sum(&u.Reasoning, x.Reasoning)
}

func text(l protocol.Link) *string {
	if !l.Defined() {
		return nil
	}
	s := l.String()
	return &s
}

func stamp(us int64) string {
	e := protocol.Event{TS: us}
	return e.Time().Format("2006-01-02T15:04:05.000000Z07:00")
}
