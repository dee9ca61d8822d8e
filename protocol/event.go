package protocol

import (
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Event is one entry of a run's journal.
type Event struct {
	Kind string          `cbor:"kind"`
	V    int             `cbor:"v"`
	Prev Link            `cbor:"prev"` // null for seq 1
	Seq  Seq             `cbor:"seq"`
	TS   int64           `cbor:"ts"` // unix microseconds
	Type EventType       `cbor:"type"`
	Step *string         `cbor:"step"` // "coder#2", or null for an event of the run
	Data cbor.RawMessage `cbor:"data"` // the Data of Type, as a map
}

// StepName is the step of the event, "" for an event of the run.
func (e *Event) StepName() string {
	if e.Step == nil {
		return ""
	}
	return *e.Step
}

// Time is TS in UTC.
func (e *Event) Time() time.Time { return time.UnixMicro(e.TS).UTC() }

// Entry is an event as a store has it: under its CID, with the stored bytes.
type Entry struct {
	Event
	CID Link
	Raw []byte
}

// EventType names what happened.
type EventType string

// The event types; Events tells what there is to know of each. Readers ignore the ones they do
// not know.
const (
	EvRunStarted       EventType = "run_started"
	EvStepStarted      EventType = "step_started"
	EvPrompt           EventType = "prompt"
	EvThinking         EventType = "thinking"
	EvText             EventType = "text"
	EvToolCall         EventType = "tool_call"
	EvToolResult       EventType = "tool_result"
	EvUsage            EventType = "usage"
	EvAttemptFailed    EventType = "attempt_failed"
	EvStepCompleted    EventType = "step_completed"
	EvWaiting          EventType = "waiting"
	EvAnswered         EventType = "answered"
	EvMessage          EventType = "message"
	EvTimerFired       EventType = "timer_fired"
	EvReminded         EventType = "reminded"
	EvEscalated        EventType = "escalated"
	EvApproval         EventType = "approval"
	EvSandbox          EventType = "sandbox"
	EvSuspended        EventType = "suspended"
	EvResumed          EventType = "resumed"
	EvLimitReached     EventType = "limit_reached"
	EvLimitChanged     EventType = "limit_changed"
	EvOwnCopy          EventType = "own_copy"
	EvCompacted        EventType = "compacted"
	EvCompactionAsked  EventType = "compaction_asked"
	EvModelFallback    EventType = "model_fallback"
	EvCorrection       EventType = "correction"
	EvTaskStarted      EventType = "task_started"
	EvTaskStateUpdated EventType = "task_state_updated"
	EvTaskWaiting      EventType = "task_waiting"
	EvTaskCompleted    EventType = "task_completed"
	EvMemoryChanged    EventType = "memory_changed"
	EvRedacted         EventType = "redacted"
	EvForked           EventType = "forked"
	EvCancelled        EventType = "cancelled"
	EvDone             EventType = "done"
	EvHeld             EventType = "held"
	EvReleased         EventType = "released"
	EvQueued           EventType = "queued"
	EvAdmitted         EventType = "admitted"
	EvGroupWaiting     EventType = "group_waiting"
	EvGroupEntered     EventType = "group_entered"
	EvGroupLeft        EventType = "group_left"
	EvClosing          EventType = "closing"
	EvClosingSkipped   EventType = "closing_skipped"
	EvCancelAsked      EventType = "cancel_asked"
	EvFilesTracked     EventType = "files_tracked"
	EvFilesAt          EventType = "files"
	EvFilesLaid        EventType = "files_laid"
	EvReused           EventType = "reused"
	EvNotReused        EventType = "not_reused"
	EvNotStored        EventType = "not_stored"
)

// Data is the data of one event type: a struct; its EventType method has a value receiver.
type Data interface{ EventType() EventType }

// RunStarted opens a journal. It holds no run id: forks share it.
type RunStarted struct {
	Start       Link       `cbor:"start" json:"start"`
	Source      Link       `cbor:"source" json:"source"` // raw: the YAML as it was read
	Title       string     `cbor:"title" json:"title"`
	Description Text       `cbor:"description" json:"description"`
	Type        string     `cbor:"type" json:"type"`
	Scope       string     `cbor:"scope" json:"scope"`
	Tags        []string   `cbor:"tags" json:"tags"`
	CreatedBy   string     `cbor:"created_by" json:"created_by"`
	TargetUser  string     `cbor:"target_user" json:"target_user"`
	RequestID   string     `cbor:"request_id" json:"request_id"`
	Parent      *ParentRun `cbor:"parent" json:"parent"`
	Workspace   string     `cbor:"workspace" json:"workspace"`
	Version     string     `cbor:"version" json:"version"`

	// Models overrides the models of roles for this run: role → list; "" is every role.
	Models map[string][]string `cbor:"models,omitempty" json:"models,omitempty"`
	// File is the path of the definition as it was given; relative script and workflow
	// files are found beside it.
	File string `cbor:"file,omitempty" json:"file,omitempty"`
	// Context overrides how the agents of this run see their past; "" is as their roles say.
	Context ContextMode `cbor:"context,omitempty" json:"context,omitempty"`
	// Place is the directory in which the run was started, where that is not Workspace.
	Place string `cbor:"place,omitempty" json:"place,omitempty"`
	// Sources are the YAML texts of the sub-workflows, and of theirs, by the CIDs of their definitions.
	Sources map[string]Link `cbor:"sources,omitempty" json:"sources,omitempty"`
	// AllowSecretInputs are the inputs that were let in although they may hold a secret.
	AllowSecretInputs []string `cbor:"allow_secret_inputs,omitempty" json:"allow_secret_inputs,omitempty"`
	// Trigger began the run; nil where a person or a client did.
	Trigger *Trigger `cbor:"trigger,omitempty" json:"trigger,omitempty"`
	// CausedBy is the notification that the run was started by, if it was.
	CausedBy *CausedBy `cbor:"caused_by,omitempty" json:"caused_by,omitempty"`
	// Groups are the names of the concurrency groups by role, as the inputs gave them; "" is that of the workflow.
	Groups map[string]string `cbor:"groups,omitempty" json:"groups,omitempty"`
	// Cache is what the run does about results that can be reused: "", CacheOff or CacheOffline.
	Cache string `cbor:"cache,omitempty" json:"cache,omitempty"`
	// Origin is the run whose prefixes providers may have in their caches already; "" is this run.
	Origin RunID `cbor:"origin,omitempty" json:"origin,omitempty"`
	// Trial tells the run apart from others that perform the same: it takes no results of theirs. "" is none.
	Trial string `cbor:"trial,omitempty" json:"trial,omitempty"`
	// Machine names the machine that Workspace is on, in a store of several; "" is the one that the store is on.
	Machine string `cbor:"machine,omitempty" json:"machine,omitempty"`
}

// StartedIn is the directory in which the run was started.
func (r RunStarted) StartedIn() string {
	if r.Place != "" {
		return r.Place
	}
	return r.Workspace
}

// ParentRun is the step of the parent that a run is the sub-workflow of.
type ParentRun struct {
	Run  RunID  `cbor:"run" json:"run"`
	Step string `cbor:"step" json:"step"`
}

// ID is the run of p; "" of nil.
func (p *ParentRun) ID() RunID {
	if p == nil {
		return ""
	}
	return p.Run
}

// StepStarted is the intent: durable before the visit acts. Its fields are those of the
// StepRecord that are known before the outcome.
type StepStarted struct {
	Start      Link   `cbor:"start" json:"start"`
	Parents    []Link `cbor:"parents" json:"parents"`
	Role       string `cbor:"role" json:"role"`
	Visit      int    `cbor:"visit" json:"visit"`
	Item       *Item  `cbor:"item" json:"item"`
	Edge       int    `cbor:"edge" json:"edge"`
	Via        Via    `cbor:"via" json:"via"`
	EdgePrompt Text   `cbor:"edgePrompt" json:"edgePrompt"`
	Resumes    Link   `cbor:"resumes" json:"resumes"`
	Tools      Link   `cbor:"tools" json:"tools"`
	Inject     Link   `cbor:"inject" json:"inject"`
	Attempt    int    `cbor:"attempt" json:"attempt"`           // from 1, over the whole visit
	Of         int    `cbor:"of,omitempty" json:"of,omitempty"` // in a fan-out: the number of items
	// Messages is how many of the messages that waited, the oldest first, are in Inject.
	Messages int `cbor:"messages,omitempty" json:"messages,omitempty"`
	// Compact is set where a person asked for a compaction, which this visit begins with.
	Compact bool `cbor:"compact,omitempty" json:"compact,omitempty"`
	// Preparing is set where the limits of a provider held the visit before Tools and Inject were there: it does nothing
	// before another step_started brings them.
	Preparing bool `cbor:"preparing,omitempty" json:"preparing,omitempty"`
}

// PromptSent is recorded before each visit's first model request.
type PromptSent struct {
	// Digest of P_k: the text of its CID. It is no Link, since the bytes are rebuilt from the
	// records and never stored: a link would make the run incomplete.
	Digest string `cbor:"digest" json:"digest"`
	Model  string `cbor:"model" json:"model"`
	Params Text   `cbor:"params" json:"params"` // canonical JSON
}

// Thinking is a model's reasoning; Block is the provider's own form, sent back verbatim
// inside the visit.
type Thinking struct {
	Content Text `cbor:"content" json:"content"`
	Block   Text `cbor:"block,omitempty,omitzero" json:"block,omitzero"`
}

// TextSaid is what a model said in one turn, the final one included.
type TextSaid struct {
	Content Text `cbor:"content" json:"content"`
}

// ToolCall is an intent: durable before the tool runs.
type ToolCall struct {
	Call string `cbor:"call" json:"call"`
	Name string `cbor:"name" json:"name"`
	Args Text   `cbor:"args" json:"args"` // raw JSON as the model wrote it
	// Digest tells the arguments, of which a part was hidden in Args, from others: their HMAC-SHA-256, in hex, by
	// a key of the user of the driving process. Older runs have the SHA-256.
	Digest string `cbor:"digest,omitempty" json:"digest,omitempty"`
}

// ToolResult answers the ToolCall of the same Call.
type ToolResult struct {
	Call    string `cbor:"call" json:"call"`
	Content Text   `cbor:"content" json:"content"`
	IsError bool   `cbor:"is_error" json:"is_error"`
	// Appeared is what the call left in the workspace, as far as a tool can leave anything.
	Appeared *Appeared `cbor:"appeared,omitempty" json:"appeared,omitempty"`
}

// Usage is what one model call used. What the provider does not report is null.
type Usage struct {
	Model        string `cbor:"model" json:"model"`
	Input        *int64 `cbor:"input" json:"input"`   // all prompt tokens, cached and written ones included
	Cached       *int64 `cbor:"cached" json:"cached"` // of Input: read from the prefix cache
	CacheWrite5m *int64 `cbor:"cache_write_5m" json:"cache_write_5m"`
	CacheWrite1h *int64 `cbor:"cache_write_1h" json:"cache_write_1h"`
	Output       *int64 `cbor:"output" json:"output"`
	Reasoning    *int64 `cbor:"reasoning" json:"reasoning"`
	TTFE         int64  `cbor:"ttfe_ms" json:"ttfe_ms"` // to the first event
	ThinkingMS   int64  `cbor:"thinking_ms" json:"thinking_ms"`
	TotalMS      int64  `cbor:"total_ms" json:"total_ms"`
	// Stop is why the reply is not whole: StopLength, StopRefused, StopOverflow or StopGivenUp;
	// "" where it is.
	Stop string `cbor:"stop,omitempty" json:"stop,omitempty"`
	// Window and Held, in tokens, are set with StopOverflow: what the model reads at most, as far
	// as it became known, and what the request held. Nothing of it was used.
	Window int64 `cbor:"window,omitempty" json:"window,omitempty"`
	Held   int64 `cbor:"held,omitempty" json:"held,omitempty"`
	// Kind is what the call was for: UsageTurn, UsageCompaction, …
	Kind string `cbor:"kind,omitempty" json:"kind,omitempty"`
	// Child is where the call stands that a sub-workflow made: its run counts in its parent's
	// too. nil for a call of the run itself.
	Child *ChildCall `cbor:"child,omitempty" json:"child,omitempty"`
}

// ChildCall is a model call in the journal of a sub-workflow's run.
type ChildCall struct {
	Run RunID `cbor:"run" json:"run"`
	Seq Seq   `cbor:"seq" json:"seq"` // of its usage event
}

// Why a reply is not whole.
const (
	StopLength  = "length"  // cut off: it has as many tokens as it may
	StopRefused = "refused" // kept back, by the model or a filter of its provider; it is no turn

	// StopOverflow is no reply at all: the request holds more than the model reads.
	StopOverflow = "overflow"
	// StopGivenUp is a call that was ended before its reply was whole, by a timeout or because the
	// run stopped. It is no turn, and the process that goes on makes the same call again.
	StopGivenUp = "given_up"
)

// What a model call was for.
const (
	UsageTurn       = ""           // a turn of the visit
	UsageCompaction = "compaction" // the summary of a compaction
	UsageReflection = "reflection" // a turn of the reflection before a compaction
	UsageGoal       = "goal"       // the goal of a task
	UsageSummary    = "summary"    // the summary of a task
)

// Held is a visit that is kept back by the limits of a provider: until it is released it does nothing, and its time
// does not count.
type Held struct {
	Provider string `cbor:"provider" json:"provider"` // as the config calls it
	Limit    string `cbor:"limit" json:"limit"`       // HeldByRequests, …
	Max      int64  `cbor:"max,omitempty" json:"max,omitempty"`
}

// What a visit is held by.
const (
	HeldByRequests   = "requests"    // Max in a minute
	HeldByTokens     = "tokens"      // Max in a minute
	HeldByInFlight   = "in_flight"   // Max at once
	HeldByRetryAfter = "retry_after" // the provider asked to wait
)

// String says it in words.
func (h Held) String() string {
	switch h.Limit {
	case HeldByRequests:
		return fmt.Sprintf("waits for the limit of %s a minute of the provider %s", Plural(int(h.Max), "request"), h.Provider)
	case HeldByTokens:
		return fmt.Sprintf("waits for the limit of %s a minute of the provider %s", Plural(int(h.Max), "token"), h.Provider)
	case HeldByInFlight:
		return fmt.Sprintf("waits for the limit of %s at once of the provider %s", Plural(int(h.Max), "request"), h.Provider)
	case HeldByRetryAfter:
		return fmt.Sprintf("waits, since the provider %s asked to", h.Provider)
	}
	return "waits for the provider " + h.Provider
}

// Released is a visit that goes on after it was held.
type Released struct {
	MS int64 `cbor:"ms" json:"ms"` // for so long
}

// AttemptFailed is one try that did not work.
type AttemptFailed struct {
	Attempt int       `cbor:"attempt" json:"attempt"`
	Error   ErrorInfo `cbor:"error" json:"error"`
	RetryAt int64     `cbor:"retry_at" json:"retry_at"` // unix µs; 0 when there is no further try
}

// StepCompleted ends a visit, also one that failed for good.
type StepCompleted struct {
	Record    Link       `cbor:"record" json:"record"`
	Result    Link       `cbor:"result" json:"result"` // Result of a sub-workflow
	MS        int64      `cbor:"ms" json:"ms"`
	Workspace *GitState  `cbor:"workspace" json:"workspace"`
	Status    StepStatus `cbor:"status,omitempty" json:"status,omitempty"` // as in the record
	// Artifacts is the tree of the files that the steps of a sub-workflow keep, of each path the newest; missing where there
	// are none. Those of the visit itself are in its record.
	Artifacts Link `cbor:"artifacts,omitempty,omitzero" json:"artifacts,omitzero"`
}

// GitState is what a visit left the workspace in; null outside of git.
type GitState struct {
	Head string `cbor:"git_head" json:"git_head"`
	// Dirty is whether files differed from the commit. Without it that is unknown: only older versions asked
	// git, which runs the programs that a repository names.
	Dirty *bool `cbor:"dirty,omitempty" json:"dirty,omitempty"`
}

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
	Source string `cbor:"source" json:"source"`
	Text   Text   `cbor:"text" json:"text"`
}

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

// SandboxTier is what confined the commands of a visit. Met is set behind a command of a run role that
// failed as at a wall: what the walls let through, and which keys open them.
type SandboxTier struct {
	Tier string `cbor:"tier" json:"tier"`
	ABI  int    `cbor:"abi" json:"abi"`
	Met  string `cbor:"met,omitempty" json:"met,omitempty"`
	// Appeared is set behind a command of a run role.
	Appeared *Appeared `cbor:"appeared,omitempty" json:"appeared,omitempty"`
}

// SuspendedBy stops a run until wf resume.
type SuspendedBy struct {
	Reason SuspendReason `cbor:"reason" json:"reason"`
	Detail Text          `cbor:"detail" json:"detail"`
	// Code is that of the Error behind the suspension, for example model_unavailable.
	Code string `cbor:"code,omitempty" json:"code,omitempty"`
}

// RestoredCode is the code of a suspension that says that the store was restored from a backup.
const RestoredCode = "restored"

// ResumedBy goes on with a suspended run.
type ResumedBy struct {
	By string `cbor:"by" json:"by"`
}

// LimitReached is a breach; cost is in micro-dollars, duration in µs.
type LimitReached struct {
	Limit string `cbor:"limit" json:"limit"` // steps, duration, cost_usd, tokens
	Value int64  `cbor:"value" json:"value"`
	Max   int64  `cbor:"max" json:"max"`
}

// LimitChanged raises a limit.
type LimitChanged struct {
	Limit string `cbor:"limit" json:"limit"`
	Max   int64  `cbor:"max" json:"max"`
	By    string `cbor:"by" json:"by"`
}

// OwnCopy says that a visit has a copy of the workspace for itself. All visits of a fan-out begin with the tree Base.
type OwnCopy struct {
	Base   Link  `cbor:"base" json:"base"`
	Files  int   `cbor:"files" json:"files"`
	Bytes  int64 `cbor:"bytes" json:"bytes"`   // that were written
	Shared int64 `cbor:"shared" json:"shared"` // bytes that the file system shares: blocks of the workspace, or files below a layer
}

// ModelFallback says that another model answered.
type ModelFallback struct {
	From   string `cbor:"from" json:"from"`
	To     string `cbor:"to" json:"to"`
	Reason string `cbor:"reason" json:"reason"`
}

// Correction says that an answer did not fit the declared output, and that the model got the reasons.
// It follows the answer.
type Correction struct {
	Number  int  `cbor:"number" json:"number"`   // from 1, over the attempt
	Reasons Text `cbor:"reasons" json:"reasons"` // one per line
}

// CompactScope is what a summary took the place of.
type CompactScope string

// The scopes of a compaction.
const (
	ScopeConversation CompactScope = "conversation" // earlier visits; the record is a Compaction
	ScopeVisit        CompactScope = "visit"        // replies and results of the running visit
)

// Compacted says that the older part of what a model reads gave way to a summary. The scope
// conversation moves the end of the conversation to Record: the visit itself, its later
// attempts and all later visits resume that. The scope visit holds for the attempt alone: its
// Replies oldest replies, with what answered them, are read as Summary from here on.
type Compacted struct {
	Scope        CompactScope `cbor:"scope" json:"scope"`
	Record       Link         `cbor:"record" json:"record"`               // conversation: the Compaction; else null
	Digest       string       `cbor:"digest" json:"digest"`               // of the prompt from here on: P_k, for a visit with what followed it
	TokensBefore int64        `cbor:"tokens_before" json:"tokens_before"` // of the newest request, as the model counted them
	TokensAfter  int64        `cbor:"tokens_after" json:"tokens_after"`   // estimated by the share of bytes that stayed

	Replies int  `cbor:"replies,omitempty" json:"replies,omitempty"`
	Summary Text `cbor:"summary,omitempty,omitzero" json:"summary,omitzero"` // visit; a conversation's is in Record
	// Model wrote the summary; "" where it is an extract, and then Error says why, if a model
	// was asked.
	Model string `cbor:"model,omitempty" json:"model,omitempty"`
	Error Text   `cbor:"error,omitempty,omitzero" json:"error,omitzero"`
}

// CompactionDraft is emitted by a performer in the place of a Compacted of the scope
// conversation: the writer of the journal makes the Compaction of it, and stores both in one
// commit.
type CompactionDraft struct {
	Compacted Compacted // without Record
	Covers    Link      // the last visit that the summary stands for
	Summary   string
	Inject    string // recalled text that follows the summary, "" for none
}

// CompactionAsked has the next visit of an agent begin with a compaction of its conversation,
// however full that is.
type CompactionAsked struct {
	By string `cbor:"by" json:"by"`
}

// Forked opens the own part of a forked journal.
type Forked struct {
	Base  Link   `cbor:"base" json:"base"` // the event forked from; also prev
	Note  string `cbor:"note" json:"note"`
	By    string `cbor:"by" json:"by"`
	Start Link   `cbor:"start,omitempty,omitzero" json:"start,omitzero"` // with another definition: its Start
	// Source is the YAML of the other definition, File its path.
	Source Link   `cbor:"source,omitempty,omitzero" json:"source,omitzero"`
	File   string `cbor:"file,omitempty" json:"file,omitempty"`
	// Sources are those of its sub-workflows, as in RunStarted.
	Sources map[string]Link `cbor:"sources,omitempty" json:"sources,omitempty"`
	// Workspace is where the fork works, when it is not where the original did.
	Workspace string `cbor:"workspace,omitempty" json:"workspace,omitempty"`
	// Machine is the one that it is on, as in RunStarted.
	Machine string `cbor:"machine,omitempty" json:"machine,omitempty"`
	// Models overrides the models of roles from here on, as in RunStarted; nil leaves them.
	Models map[string][]string `cbor:"models,omitempty" json:"models,omitempty"`
	// Groups are those of the other definition, as in RunStarted.
	Groups map[string]string `cbor:"groups,omitempty" json:"groups,omitempty"`
	// Tags are added to those of the run.
	Tags []string `cbor:"tags,omitempty" json:"tags,omitempty"`
	// Origin and Trial are as in RunStarted, from here on.
	Origin RunID  `cbor:"origin,omitempty" json:"origin,omitempty"`
	Trial  string `cbor:"trial,omitempty" json:"trial,omitempty"`
	// Messages is how many of the messages that waited, the oldest first, were taken back: the fork does not have them.
	Messages int `cbor:"messages,omitempty" json:"messages,omitempty"`
}

// CancelledBy ends a run for good.
type CancelledBy struct {
	By     string `cbor:"by" json:"by"`
	Reason string `cbor:"reason" json:"reason"`
}

// Finished is the last event of a run.
type Finished struct {
	Status  RunStatus `cbor:"status" json:"status"`
	Result  Link      `cbor:"result" json:"result"`
	Kontask string    `cbor:"kontask" json:"kontask"`
}

// Delta is a piece of output on its way to live watchers. It is never stored and never a
// cursor.
type Delta struct {
	Kind string `json:"kind"` // text, thinking, stdout, stderr
	Text string `json:"text"`
}

// EvDelta is the type of a Delta on the wire.
const EvDelta EventType = "delta"

// EventType names the type of a Delta.
func (Delta) EventType() EventType { return EvDelta }
