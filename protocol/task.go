package protocol

import "fmt"

// The tools by which an agent steers its task. They run without approval and act on the
// task alone; screens leave them out, the journal has them.
const (
	ToolTaskUpdateState   = "task_update_state"
	ToolTaskWaitingOnUser = "task_waiting_on_user"
	ToolTaskComplete      = "task_complete"
)

// IsTaskControl reports whether a tool steers a task.
func IsTaskControl(tool string) bool {
	return tool == ToolTaskUpdateState || tool == ToolTaskWaitingOnUser || tool == ToolTaskComplete
}

// TaskStatus is the state of a task.
//
//	active ──► waiting ──► active      the person answered
//	   └─────► completed for good
type TaskStatus string

// The states of a task.
const (
	TaskActive    TaskStatus = "active"
	TaskWaiting   TaskStatus = "waiting"
	TaskCompleted TaskStatus = "completed"
)

// Defaults and bounds of tasks.
const (
	TaskGoalMax          = 80  // runes of a goal
	DefaultTaskSummaries = 3   // of earlier tasks, that a task begins with
	DefaultTaskWords     = 200 // of a summary
)

// TaskSummary is the writer of the summary of a task.
type TaskSummary string

// The agent itself as it completes the task, a further model call, or none.
const (
	SummaryByAgent TaskSummary = "agent" // also ""
	SummaryByModel TaskSummary = "model"
	SummaryNone    TaskSummary = "none"
)

// TaskSpec is how a role with the context task keeps its tasks. nil is all defaults.
type TaskSpec struct {
	Summaries *int        `cbor:"summaries,omitempty" json:"summaries,omitempty"` // of earlier tasks; nil is DefaultTaskSummaries
	Summary   TaskSummary `cbor:"summary,omitempty" json:"summary,omitempty"`
	Words     int         `cbor:"words,omitempty" json:"words,omitempty"` // of a summary; 0 is DefaultTaskWords
	Model     string      `cbor:"model,omitempty" json:"model,omitempty"` // that writes goals and summaries; "" is the visit's own
}

// TaskStarted opens a task. Its id is that of the step.
type TaskStarted struct {
	ID       string `cbor:"id" json:"id"`
	Goal     string `cbor:"goal" json:"goal"` // at most TaskGoalMax runes, one line
	Original Text   `cbor:"original" json:"original"`
	// Error says why no model wrote the goal; it is then the beginning of Original.
	Error Text `cbor:"error,omitempty,omitzero" json:"error,omitzero"`
}

// TaskStateUpdated replaces the state of a task.
type TaskStateUpdated struct {
	ID    string `cbor:"id" json:"id"`
	State Text   `cbor:"state" json:"state"`
	// Shared are the values shared with later tasks so far: a canonical JSON object, or null.
	Shared Text `cbor:"shared,omitempty,omitzero" json:"shared,omitzero"`
}

// TaskWaitingOn says that a task waits for a person; a waiting event with the same question
// is in the same commit.
type TaskWaitingOn struct {
	ID       string `cbor:"id" json:"id"`
	Question Text   `cbor:"question" json:"question"`
}

// TaskDone ends a task.
type TaskDone struct {
	ID            string `cbor:"id" json:"id"`
	FinalResponse Text   `cbor:"final_response" json:"final_response"`
	Summary       Text   `cbor:"summary" json:"summary"`
	Shared        Text   `cbor:"shared,omitempty,omitzero" json:"shared,omitzero"` // as in TaskStateUpdated
	// Error says why no model wrote the summary, where one was asked.
	Error Text `cbor:"error,omitempty,omitzero" json:"error,omitzero"`
}

// EventType names the type of each data.
func (TaskStarted) EventType() EventType      { return EvTaskStarted }
func (TaskStateUpdated) EventType() EventType { return EvTaskStateUpdated }
func (TaskWaitingOn) EventType() EventType    { return EvTaskWaiting }
func (TaskDone) EventType() EventType         { return EvTaskCompleted }

// TaskData is what the record of a task holds as data. A role that declares an output has its
// own fields there, and this below the key "task".
type TaskData struct {
	Goal     string     `json:"goal"`
	Status   TaskStatus `json:"status"`
	State    string     `json:"state"`
	Question string     `json:"question"` // the last one that was asked
	Summary  string     `json:"summary"`
	Shared   JSON       `json:"shared,omitempty"` // an object: the values that this task shared
}

// ParseContext reads a context mode; "" is that of the roles. Any other word is an error
// wrapping ErrUsage.
func ParseContext(s string) (ContextMode, error) {
	switch m := ContextMode(s); m {
	case "", ContextConversation, ContextFresh, ContextTask:
		return m, nil
	}
	return "", fmt.Errorf("context %q: want conversation, task or fresh: %w", s, ErrUsage)
}
