package api

import (
	"context"

	"wf/protocol"
)

// Tasks shows the tasks of runs: the visits of agents with context: task.
type Tasks interface {
	// Tasks lists the tasks of a run in the order in which they began; one that failed is among them.
	Tasks(ctx context.Context, run protocol.RunID, p Part) (*TaskList, error)
	// Task is the task of a step. One that the run has not is an error wrapping protocol.ErrNotFound.
	Task(ctx context.Context, run protocol.RunID, step string) (*RunTask, error)
}

// TaskList is tasks of a run: wf.tasks/v1.
type TaskList struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	Items  []*Task        `json:"items"`
	Next   string         `json:"next,omitempty"` // Part.After of the tasks behind these; "" at the end
}

// RunTask is a task with the run that it is of: wf.task/v1.
type RunTask struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	*Task
}

// Task is one task.
type Task struct {
	ID       string              `json:"id"` // of the step
	Goal     string              `json:"goal"`
	Status   protocol.TaskStatus `json:"status"`
	Failed   bool                `json:"failed,omitempty"` // its visit failed for good
	Original string              `json:"original"`         // the message that set it
	State    string              `json:"state"`            // what the agent noted of its progress
	Question string              `json:"question"`         // the last one that was asked

	FinalResponse string        `json:"final_response"`
	Summary       string        `json:"summary"`
	Shared        protocol.JSON `json:"shared,omitempty"` // values for later tasks, an object

	Created   Time     `json:"created"`   // RFC 3339, in UTC
	Completed *Time    `json:"completed"` // null while it is open
	Seconds   *int64   `json:"duration_s"`
	Cost      *CostRow `json:"cost"` // of all its model calls
}
