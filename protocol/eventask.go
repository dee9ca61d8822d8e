package protocol

import "cmp"

// WaitKind is what a visit waits for.
type WaitKind string

// The kinds of waiting.
const (
	WaitQuestion WaitKind = "question"
	WaitChoice   WaitKind = "choice"
	WaitApproval WaitKind = "approval"
	WaitSignal   WaitKind = "signal"
	WaitTimer    WaitKind = "timer"
	WaitTask     WaitKind = "task"
)

// WaitingFor parks a visit until someone answers or Due has passed.
type WaitingFor struct {
	Kind     WaitKind `cbor:"kind" json:"kind"`
	Question Text     `cbor:"question" json:"question"`
	Choices  []Choice `cbor:"choices" json:"choices"`
	Form     Text     `cbor:"form" json:"form"`                     // canonical JSON Schema, with FormOrder
	Due      int64    `cbor:"due" json:"due"`                       // unix µs, 0 is never
	Call     string   `cbor:"call,omitempty" json:"call,omitempty"` // tool call under approval, or by which a task waits
	// Shown is the digest of a call under approval: of what Question shows, and of all that decides
	// what the call does. A call of another digest is asked for again.
	Shown string `cbor:"shown,omitempty" json:"shown,omitempty"`
	// Remind are the times of reminders, in unix µs, and Assignees the names whose answers count, of those that
	// are authenticated; none is everybody.
	Remind    []int64  `cbor:"remind,omitempty" json:"remind,omitempty"`
	Assignees []string `cbor:"assignees,omitempty" json:"assignees,omitempty"`
	// Reminded and Escalated are of a question of a sub-workflow, whose run has the timers: how many of its reminders
	// are over, and how often it was put to further people, by the time this visit repeats it.
	Reminded  int `cbor:"reminded,omitempty" json:"reminded,omitempty"`
	Escalated int `cbor:"escalated,omitempty" json:"escalated,omitempty"`
}

// Reminded is a reminder of a question that waits still: the n-th, those before it that were missed included.
type Reminded struct {
	N int `cbor:"n" json:"n"`
}

// Escalated puts a question that was not answered in time to further people. Due and Remind take the place of
// those of the WaitingFor, and Assignees are all who may answer now.
type Escalated struct {
	N         int      `cbor:"n" json:"n"` // from 1
	Assignees []string `cbor:"assignees" json:"assignees"`
	Due       int64    `cbor:"due" json:"due"` // unix µs
	Remind    []int64  `cbor:"remind,omitempty" json:"remind,omitempty"`
}

// Answered is what someone said to a waiting visit.
type Answered struct {
	By     string `cbor:"by" json:"by"`
	Source string `cbor:"source" json:"source"` // cli, terminal, http, …
	Choice string `cbor:"choice" json:"choice"`
	Text   Text   `cbor:"text" json:"text"`
	Fields Text   `cbor:"fields" json:"fields"` // canonical JSON object
	// Messages is how many of the messages that waited, the oldest first, are Text.
	Messages int `cbor:"messages,omitempty" json:"messages,omitempty"`
	// Shown is that of the WaitingFor that was answered.
	Shown string `cbor:"shown,omitempty" json:"shown,omitempty"`
}

// MessageIn is a message that came from outside while the run was on.
type MessageIn struct {
	Source string `cbor:"source" json:"source"` // as its sender says
	Text   Text   `cbor:"text" json:"text"`
	By     string `cbor:"by,omitempty" json:"by,omitempty"` // who sent it: the user, or the name of a token
}

// Sender is who sent it; in older journals its source alone says that.
func (m MessageIn) Sender() string { return cmp.Or(m.By, m.Source) }

// TimerFired ends a wait; Due is what it was set to.
type TimerFired struct {
	Due int64 `cbor:"due" json:"due"`
}

// Approval is the decision on a tool call: allow or deny.
type Approval struct {
	Call     string `cbor:"call" json:"call"`
	Tool     string `cbor:"tool" json:"tool"`
	Decision string `cbor:"decision" json:"decision"`
	By       string `cbor:"by" json:"by"`
	// Shown is the digest that the decision is bound to; older versions wrote none. For is ForRun where
	// calls of that digest are allowed without asking until the run ends.
	Shown string `cbor:"shown,omitempty" json:"shown,omitempty"`
	For   string `cbor:"for,omitempty" json:"for,omitempty"`
}

// What a person can answer to the question for a tool call: the values of its choices. The first two
// are decisions too.
const (
	Allow    = "allow"     // this call, once
	Deny     = "deny"      // with the text of the answer as the reason
	AllowRun = "allow_run" // calls of the same digest, for the whole run
)

// ForRun is how long an Approval may hold: for the whole run.
const ForRun = "run"
