package service

import (
	"context"

	"wf/api"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/service/compose"
)

// ChatType is the type of the runs that are chats.
const ChatType = protocol.ChatType

// Agent is the first agent of a run.
func (l *Local) Agent(ctx context.Context, run protocol.RunID) (a api.Agent, err error) {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return a, err
	}
	w := st.Program().Workflow
	for _, r := range w.Roles {
		if r.Action != protocol.ActPrompt {
			continue
		}
		if models := rules.Models(st.Info.Models, &r); a.Model == "" && len(models) > 0 {
			a.Model, a.Window = models[0], l.Watermark(&r, models[0])
		}
		if a.Memory == "" && r.Memory != nil {
			a.Memory = compose.AgentScope(w.Name, r)
		}
	}
	return a, nil
}

// Again begins the workflow of a run anew, with its inputs and as a chat, and has it driven. What the old run
// remembered gets tombstones.
func (l *Local) Again(ctx context.Context, run protocol.RunID) (protocol.RunID, error) {
	if err := l.Engine.Own(ctx, run); err != nil { // what others wrote is not begun anew unasked either
		return "", err
	}
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return "", err
	}
	agent, err := l.Agent(ctx, run)
	if err != nil {
		return "", err
	}
	source, err := protocol.ReadPayload(ctx, l.Store, st.Info.Source)
	if err != nil {
		return "", err
	}
	again, _, err := l.Engine.Begin(ctx, engine.Launch{Program: st.Program(), Source: source, Inputs: st.Opened().Raw, Type: ChatType,
		Title: st.Info.Title, Tags: st.Info.Tags, CreatedBy: caller(ctx), Workspace: st.Info.Workspace, File: st.Info.File,
		Models: st.Info.Models, Context: st.Info.Context, AllowSecretInputs: st.Info.AllowSecretInputs})
	if err != nil {
		return "", err
	}
	if agent.Memory != "" {
		if err := l.forget(ctx, agent.Memory, run); err != nil {
			return "", err
		}
	}
	l.Keeper.Keep(again, engine.DriveOptions{By: caller(ctx)})
	return again, nil
}

// forget sets tombstones on what a run remembered; the history of the memory stays.
func (l *Local) forget(ctx context.Context, scope string, run protocol.RunID) error {
	all, err := l.Memories(ctx, api.MemoryQuery{Scope: scope, Oldest: true, Sums: true})
	if err != nil {
		return err
	}
	c := api.MemoryChanges{Scope: scope}
	for _, x := range all.Items {
		if x.Run == run {
			c.Changes = append(c.Changes, api.MemoryChange{ID: x.ID, Remove: true})
		}
	}
	if len(c.Changes) == 0 {
		return nil
	}
	_, err = l.ChangeMemories(ctx, c)
	return err
}

// NewestChat is the chat that moved last and has not ended, or the run to which that went back or forth; "" for none.
func (l *Local) NewestChat(ctx context.Context) (protocol.RunID, error) {
	for q := (api.Query{Type: ChatType, Limit: 10}); ; {
		p, err := l.List(ctx, q)
		if err != nil {
			return "", err
		}
		for _, r := range p.Items {
			if r.Status.Final() {
				continue
			}
			st, err := l.Engine.State(ctx, r.ID)
			if err != nil {
				return "", err
			}
			return l.whereTo(ctx, r.ID, st.Info.Workspace, "")
		}
		if p.Next == nil {
			return "", nil
		}
		q.Before = *p.Next
	}
}
