package main

import (
	"context"

	"wf/agentkit/task"
	"wf/api"
	"wf/cmd/internal/chat"
	"wf/hub/client"
	"wf/service/query"
)

// Tasks are all tasks of the run, with their pages, wherever it is.
func (s *chatSession) Tasks(ctx context.Context) ([]chat.TaskPage, error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	list, err := client.Service{API: s.api}.Tasks(ctx, s.current(), api.Part{})
	if err != nil {
		return nil, err
	}
	var out []chat.TaskPage
	for _, x := range list.Items {
		t, err := query.TaskPageOf(x)
		if err != nil {
			return nil, err
		}
		tokens := "?"
		if used := t.Tokens(); used.Told {
			tokens = task.Count(used.In()) + " in / " + task.Count(used.Output) + " out"
		}
		out = append(out, chat.TaskPage{Task: chat.Task{ID: t.ID, Goal: t.Goal, State: t.State, Status: t.Status},
			Cost: task.Dollars(t.Cost), Tokens: tokens, Markdown: t.Markdown()})
	}
	return out, nil
}
