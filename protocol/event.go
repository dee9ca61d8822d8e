package protocol

import (
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
