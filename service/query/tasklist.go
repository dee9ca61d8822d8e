package query

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"wf/agentkit/price"
	"wf/agentkit/task"
	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// TaskList lists the tasks of a run, with what they cost.
func TaskList(ctx context.Context, s engine.Store, run protocol.RunID, p api.Part, table price.Table) (*api.TaskList, error) {
	tasks, err := Tasks(ctx, s, run)
	if err != nil {
		return nil, err
	}
	if p.After != "" {
		i := slices.IndexFunc(tasks, func(t *task.Task) bool { return t.ID == p.After })
		if i < 0 {
			return nil, noTaskOf(run, p.After)
		}
		tasks = tasks[i+1:]
	}
	out := &api.TaskList{Schema: "wf.tasks/v1", Run: run, Items: []*api.Task{}}
	size := 0
	for i, t := range tasks {
		more := len(t.Goal) + len(t.Original) + len(t.State) + len(t.Question) + len(t.FinalResponse) + len(t.Summary) + len(t.Shared)
		if p.Full(i, size, more) {
			out.Next = tasks[i-1].ID
			break
		}
		size += more
		out.Items = append(out.Items, newTask(t, table))
	}
	return out, nil
}

// Task is the task of a step.
func Task(ctx context.Context, s engine.Store, run protocol.RunID, step string, table price.Table) (*api.RunTask, error) {
	tasks, err := Tasks(ctx, s, run)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if t.ID == step {
			return &api.RunTask{Schema: "wf.task/v1", Run: run, Task: newTask(t, table)}, nil
		}
	}
	return nil, noTaskOf(run, step)
}

func noTaskOf(run protocol.RunID, step string) error {
	return protocol.ErrNotFound.With("wf task ls "+string(run)+" lists the tasks", "run %s has no task %s", run, step)
}

func newTask(t *task.Task, table price.Table) *api.Task {
	out := &api.Task{ID: t.ID, Goal: t.Goal, Status: t.Status, Failed: t.Failed, Original: t.Original, State: t.State, Question: t.Question,
		FinalResponse: t.FinalResponse, Summary: t.Summary, Shared: t.Shared, Created: Stamp(t.Created)}
	_, out.Cost = CostOf(t.Calls, table)
	if t.Completed > 0 {
		out.Completed, out.Seconds = new(Stamp(t.Completed)), new((t.Completed-t.Created)/1e6)
	}
	return out
}

// A TaskPage is a task as people see it.
type TaskPage struct {
	*task.Task
	Cost *int64 // pico-dollars, nil where it is unknown
}

// Markdown is the page.
func (p TaskPage) Markdown() string { return p.Task.Markdown(p.Cost) }

// TaskPageOf reads what a service told of a task: all of its model calls count as one.
func TaskPageOf(t *api.Task) (TaskPage, error) {
	p := TaskPage{Task: &task.Task{ID: t.ID, Goal: t.Goal, Status: t.Status, Failed: t.Failed, Original: t.Original, State: t.State, Question: t.Question,
		FinalResponse: t.FinalResponse, Summary: t.Summary, Shared: t.Shared}}
	var err error
	if p.Created, err = microseconds(t.Created); err == nil && t.Completed != nil {
		p.Completed, err = microseconds(*t.Completed)
	}
	if c := t.Cost; c != nil && c.Calls > c.Unreported {
		p.Calls = []protocol.Usage{{Input: &c.Input, Cached: &c.Cached, CacheWrite5m: &c.CacheWrite5m, CacheWrite1h: &c.CacheWrite1h, Output: &c.Output}}
	}
	if err == nil && t.Cost != nil && t.Cost.CostUSD != nil {
		p.Cost, err = picoDollars(*t.Cost.CostUSD)
	}
	if err != nil {
		return p, fmt.Errorf("task %s: %w", t.ID, err)
	}
	return p, nil
}

func microseconds(stamp string) (int64, error) {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return at.UnixMicro(), err
}

// picoDollars reads what dollars wrote. Another machine may have written anything.
func picoDollars(n json.Number) (*int64, error) {
	f, err := n.Float64()
	if err != nil || f < 0 || f > 1e6 {
		return nil, fmt.Errorf("%.40q is no cost in dollars: %w", n.String(), protocol.ErrBadRequest)
	}
	return new(int64(math.Round(f * 1e12))), nil
}
