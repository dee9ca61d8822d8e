package query

import (
	"context"
	"fmt"
	"wf/agentkit/task"
	"wf/engine"
	"wf/protocol"
)

// A TaskReader folds the tasks of a run.
type TaskReader struct {
	fold task.Fold
	seq  protocol.Seq
}

// ofTasks are the event types that tell of tasks.
var ofTasks = map[protocol.EventType]bool{
	protocol.EvTaskStarted: true, protocol.EvTaskStateUpdated: true, protocol.EvTaskWaiting: true, protocol.EvTaskCompleted: true,
	protocol.EvStepStarted: true, protocol.EvStepCompleted: true, protocol.EvAnswered: true, protocol.EvUsage: true,
}

// Of is a task by its step; nil where there is none.
func (r *TaskReader) Of(step string) *task.Task { return r.fold.Of(step) }

// Forget drops a task that is not asked for again.
func (r *TaskReader) Forget(step string) { r.fold.Forget(step) }

// Read goes on to the newest event.
func (r *TaskReader) Read(ctx context.Context, e *engine.Engine, s protocol.Source, run protocol.RunID) error {
	for x, err := range s.After(ctx, run, r.seq) {
		if err != nil {
			return err
		}
		r.seq = x.Seq
		if !ofTasks[x.Type] || x.Type != protocol.EvTaskStarted && r.fold.Of(x.StepName()) == nil {
			continue // it need not be decoded
		}
		u, err := e.Update(ctx, run, x)
		if err != nil {
			return fmt.Errorf("event %d: %w", x.Seq, err)
		}
		r.fold.Add(x.StepName(), x.TS, u.Data)
	}
	return nil
}

// Tasks reads all tasks of a run.
func Tasks(ctx context.Context, s engine.Store, run protocol.RunID) ([]*task.Task, error) {
	var r TaskReader
	if err := r.Read(ctx, &engine.Engine{Store: s}, s, run); err != nil {
		return nil, fmt.Errorf("tasks of run %s: %w", run, err)
	}
	return r.fold.Tasks, nil
}
