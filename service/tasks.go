package service

import (
	"context"

	"wf/api"
	"wf/protocol"
	"wf/service/query"
)

// Tasks lists the tasks of a run.
func (l *Local) Tasks(ctx context.Context, run protocol.RunID, p api.Part) (*api.TaskList, error) {
	table, err := l.Prices()
	if err != nil {
		return nil, err
	}
	return query.TaskList(ctx, l.Store, run, p, table)
}

// Task is the task of a step.
func (l *Local) Task(ctx context.Context, run protocol.RunID, step string) (*api.RunTask, error) {
	table, err := l.Prices()
	if err != nil {
		return nil, err
	}
	return query.Task(ctx, l.Store, run, step, table)
}
