package service

import (
	"context"
	"slices"

	"wf/agentkit/memory"
	"wf/api"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/service/query"
)

// ChatType is the type of the runs that are chats.
const ChatType = "chat"

// Agent is the first agent of a run.
func (l *Local) Agent(ctx context.Context, run protocol.RunID) (a api.Agent, err error) {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return a, err
	}
	for _, r := range st.Program().Workflow.Roles {
		if r.Action != protocol.ActPrompt {
			continue
		}
		if models := rules.Models(st.Info.Models, &r); len(models) > 0 {
			return api.Agent{Model: models[0], Window: l.Watermark(&r, models[0])}, nil
		}
	}
	return a, nil
}

// MemoryOf opens the memory of the first agent of a run that has one; nil for none. It is closed with the others.
func (l *Local) MemoryOf(ctx context.Context, run protocol.RunID) (*memory.Store, error) {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return nil, err
	}
	w := st.Program().Workflow
	for _, r := range w.Roles {
		if r.Action == protocol.ActPrompt && r.Memory != nil {
			return l.AgentMemory(l.Store)(ctx, protocol.Turn{Run: run, Workflow: w.Name, Role: r})
		}
	}
	return nil, nil
}

// remembered is how many memories are shown where none is asked for.
const remembered = 30

// Remembered is what the first agent of a run that has a memory remembers, or what a text finds of it; scope names
// the memory, "" for none.
func (l *Local) Remembered(ctx context.Context, run protocol.RunID, text string) (scope string, found []api.Memo, err error) {
	m, err := l.MemoryOf(ctx, run)
	if err != nil || m == nil {
		return "", nil, err
	}
	var hits []memory.Hit
	if text != "" {
		hits, err = m.Recall(ctx, memory.Query{Text: text})
	} else {
		var list memory.Listing
		list, err = m.List(ctx, remembered)
		for _, x := range append(list.Pinned, list.Recent...) {
			hits = append(hits, memory.Hit{Memory: x})
		}
	}
	if err != nil {
		return "", nil, err
	}
	for _, h := range hits {
		text, err := m.Text(ctx, h.Memory)
		if err != nil {
			return "", nil, err
		}
		found = append(found, api.Memo{ID: h.ID, Text: text, Tags: h.Tags, Pinned: h.Pinned, Distance: h.Distance})
	}
	return m.Scope(), found, nil
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
	m, err := l.MemoryOf(ctx, run)
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
	if m != nil {
		if err := forget(ctx, m, run); err != nil {
			return "", err
		}
		l.NoteMemory(ctx, l.Store, m.Scope())
	}
	l.Keeper.Keep(again, engine.DriveOptions{By: caller(ctx)})
	return again, nil
}

// forget sets tombstones on what a run remembered; the history of the memory stays.
func forget(ctx context.Context, m *memory.Store, run protocol.RunID) error {
	var all []memory.Target
	err := m.View(ctx, func(st *memory.State) {
		for x := range st.Newest() {
			if x.Run == run {
				all = append(all, memory.Target{ID: x.ID, Edit: memory.Edit{Remove: true}})
			}
		}
	})
	if err != nil || len(all) == 0 {
		return err
	}
	slices.Reverse(all)
	return m.EditAll(ctx, all, memory.Origin{By: caller(ctx), Run: run})
}

// NewestChat is the chat that moved last and has not ended, "" for none.
func (l *Local) NewestChat(ctx context.Context) (protocol.RunID, error) {
	heads, err := query.Newest(ctx, l.Store)
	if err != nil {
		return "", err
	}
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		st, err := l.Engine.State(ctx, run)
		if err != nil {
			return "", err
		}
		if st.Info.Type == ChatType && !st.Status().Final() {
			return run, nil
		}
	}
	return "", nil
}
