package task

import (
	"slices"

	"wf/protocol"
)

// Task is what the journal of a run tells of one task.
type Task struct {
	ID       string              `json:"id"` // of the step
	Goal     string              `json:"goal"`
	Status   protocol.TaskStatus `json:"status"`
	Failed   bool                `json:"failed,omitempty"` // its visit failed for good
	Original string              `json:"original"`
	State    string              `json:"state"`
	Question string              `json:"question"` // the last one that was asked

	FinalResponse string        `json:"final_response"`
	Summary       string        `json:"summary"`
	Shared        protocol.JSON `json:"shared,omitempty"`

	Created   int64 `json:"-"` // unix µs
	Completed int64 `json:"-"` // unix µs, 0 while it is open
	Touched   int64 `json:"-"` // unix µs of its newest event

	Calls []protocol.Usage `json:"-"` // one for each model call, the goal's and the summary's too
}

// Fold gathers the tasks of a run from its events, in their order. Its zero value is ready.
type Fold struct {
	Tasks []*Task // in the order in which they began
	byID  map[string]*Task
}

// Add takes in one event: its step, its time in unix µs, and its data with long texts in place.
// It returns the task that the event belongs to, or nil.
func (f *Fold) Add(step string, at int64, data protocol.Data) *Task {
	if d, ok := data.(protocol.TaskStarted); ok {
		if f.byID == nil {
			f.byID = map[string]*Task{}
		}
		t := &Task{ID: d.ID, Goal: d.Goal, Original: d.Original.S, Status: protocol.TaskActive, Created: at, Touched: at}
		f.byID[step], f.Tasks = t, append(f.Tasks, t)
		return t
	}
	t := f.byID[step]
	if t == nil {
		return nil
	}
	t.Touched = at
	t.take(data, at)
	return t
}

// Forget drops a task, so that a long run does not fill the memory of its reader.
func (f *Fold) Forget(step string) {
	t := f.byID[step]
	delete(f.byID, step)
	f.Tasks = slices.DeleteFunc(f.Tasks, func(other *Task) bool { return other == t })
}

// Of is the task of a step, or nil.
func (f *Fold) Of(step string) *Task { return f.byID[step] }

func (t *Task) take(data protocol.Data, at int64) {
	switch d := data.(type) {
	case protocol.TaskStateUpdated:
		t.State = d.State.S
		t.share(d.Shared.S)
	case protocol.TaskWaitingOn:
		t.Status, t.Question = protocol.TaskWaiting, d.Question.S
	case protocol.Answered:
		if t.Status == protocol.TaskWaiting {
			t.Status = protocol.TaskActive
		}
	case protocol.TaskDone:
		t.Status, t.Completed = protocol.TaskCompleted, at
		t.FinalResponse, t.Summary = d.FinalResponse.S, d.Summary.S
		t.share(d.Shared.S)
	case protocol.Usage:
		t.Calls = append(t.Calls, d)
	case protocol.StepStarted:
		t.Failed = false
	case protocol.StepCompleted:
		t.Failed = d.Status == protocol.StepFailed
	}
}

func (t *Task) share(values string) {
	if values != "" {
		t.Shared = protocol.JSON(values)
	}
}

// Tokens sums the calls of a task. Told is false where no provider told anything.
type Tokens struct {
	New, Cached, Written, Output int64
	Told                         bool
}

// In is all prompt tokens.
func (t Tokens) In() int64 { return t.New + t.Cached + t.Written }

// Tokens are what the calls of the task used.
func (t *Task) Tokens() Tokens {
	var sum Tokens
	for _, u := range t.Calls {
		sum.Told = sum.Told || u.Input != nil || u.Output != nil
		cached, written := of(u.Cached), of(u.CacheWrite5m)+of(u.CacheWrite1h)
		sum.Cached += cached
		sum.Written += written
		sum.New += max(0, of(u.Input)-cached-written)
		sum.Output += of(u.Output)
	}
	return sum
}

func of(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
