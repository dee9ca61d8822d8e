package main

import (
	"context"
	"fmt"

	"wf/agentkit/task"
	"wf/api"
	"wf/cmd/internal/chat"
	"wf/engine"
	"wf/hub/client"
	"wf/protocol"
	"wf/service/query"
)

// Tasks are all tasks of the run, with their pages, wherever it is.
func (s *chatSession) Tasks(ctx context.Context) ([]chat.TaskPage, error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	prices, err := s.a.Prices()
	if err != nil {
		return nil, err
	}
	tasks, err := tasksOver(ctx, s.api, s.current())
	if err != nil {
		return nil, err
	}
	var out []chat.TaskPage
	for _, t := range tasks {
		cost, _ := query.CostOf(t.Calls, prices)
		tokens := "?"
		if used := t.Tokens(); used.Told {
			tokens = task.Count(used.In()) + " in / " + task.Count(used.Output) + " out"
		}
		out = append(out, chat.TaskPage{Task: chat.Task{ID: t.ID, Goal: t.Goal, State: t.State, Status: t.Status},
			Cost: task.Dollars(cost), Tokens: tokens, Markdown: t.Markdown(cost)})
	}
	return out, nil
}

// tasksOver reads all tasks of a run over the API of a daemon.
func tasksOver(ctx context.Context, server *client.API, run protocol.RunID) ([]*task.Task, error) {
	blocks := &client.Blocks{API: server}
	read := func(l protocol.Link) ([]byte, error) { return blocks.Block(ctx, l) }
	r := server.Replay(run)
	r.Codec, r.Patience = protocol.CBORFrames, -1
	var tasks query.TaskReader
	err := r.Follow(ctx, client.Consumer{Event: func(e client.Event) error {
		return tasks.Take(e.Entry, func() (api.Update, error) { return engine.ReadUpdate(read, run, e.Entry) })
	}})
	if err != nil {
		return nil, fmt.Errorf("tasks of run %s: %w", run, err)
	}
	return tasks.Tasks(), nil
}
