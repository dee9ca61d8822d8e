package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"wf/agentkit/memory"
	"wf/cmd/internal/chat"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
)

// chatMemory opens the memory of the agent that is talked with; ok is false where it has none.
// It is closed with the app's other memories.
func (s *chatSession) chatMemory(ctx context.Context) (m *memory.Store, ok bool, err error) {
	if s.local == nil {
		return nil, false, fail(protocol.ErrUsage, "wf memory, where the agent is", "the memories are with the agent: wf memory shows them there")
	}
	st, err := s.local.Service.Engine.State(ctx, s.current())
	if err != nil {
		return nil, false, err
	}
	for _, r := range st.Program().Workflow.Roles {
		if r.Action == protocol.ActPrompt && r.Memory != nil {
			m, err := s.a.AgentMemory(s.local.Service.Store)(ctx, protocol.Turn{Run: s.current(), Workflow: st.Program().Workflow.Name, Role: r})
			return m, err == nil, err
		}
	}
	return nil, false, nil
}

// memories shows what is remembered, or writes it to a file.
func (s *chatSession) memories(ctx context.Context, c chat.Command) (chat.Outcome, error) {
	m, ok, err := s.chatMemory(ctx)
	if err != nil {
		return chat.Outcome{}, err
	}
	if !ok {
		return chat.Outcome{Text: "this agent has no memory; memory: true gives it one"}, nil
	}
	if c.Action == chat.Dump {
		path := cmp.Or(c.Arg, "memories.json")
		if _, err := os.Stat(path); err == nil && c.Arg == "" {
			return chat.Outcome{}, usagef("%s is there already; /dump PATH writes elsewhere", path)
		}
		if err := s.a.memoryDump(ctx, m, []string{path}); err != nil {
			return chat.Outcome{}, err
		}
		return chat.Outcome{Text: "the memories are in " + path}, nil
	}
	var hits []memory.Hit
	if c.Arg != "" {
		hits, err = m.Recall(ctx, memory.Query{Text: c.Arg})
	} else {
		var l memory.Listing
		if l, err = m.List(ctx, 30); err == nil {
			for _, x := range append(l.Pinned, l.Recent...) {
				hits = append(hits, memory.Hit{Memory: x})
			}
		}
	}
	if err != nil {
		return chat.Outcome{}, err
	}
	var b strings.Builder
	for _, h := range hits {
		text, err := m.Text(ctx, h.Memory)
		if err != nil {
			return chat.Outcome{}, err
		}
		fmt.Fprintf(&b, "%d%s", h.ID, map[bool]string{true: " pinned"}[h.Pinned])
		if len(h.Tags) > 0 {
			b.WriteString(" [" + strings.Join(h.Tags, ", ") + "]")
		}
		if h.Distance != nil {
			fmt.Fprintf(&b, " %.2f away", *h.Distance)
		}
		b.WriteString("\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n\n")
	}
	if b.Len() == 0 {
		b.WriteString("nothing")
	}
	return chat.Outcome{Dialog: true, Title: "Remembered in " + m.Scope(), Text: b.String()}, nil
}

// reset begins the workflow anew; what this run remembered gets tombstones.
func (s *chatSession) reset(ctx context.Context) (chat.Outcome, error) {
	if s.local == nil {
		return chat.Outcome{}, fail(protocol.ErrUsage, "wf chat begins a new one there", "a chat with a daemon elsewhere is not reset from here: /quit, and wf chat begins a new one")
	}
	old := s.current()
	if err := s.local.Service.Engine.Own(ctx, old); err != nil { // what others wrote is not begun anew unasked either
		return chat.Outcome{}, err
	}
	st, err := s.local.Service.Engine.State(ctx, old)
	if err != nil {
		return chat.Outcome{}, err
	}
	m, ok, err := s.chatMemory(ctx)
	if err != nil {
		return chat.Outcome{}, err
	}
	source, err := protocol.ReadPayload(ctx, s.local.Service.Store, st.Info.Source)
	if err != nil {
		return chat.Outcome{}, err
	}
	run, _, err := s.local.Service.Engine.Begin(ctx, engine.Launch{Program: st.Program(), Source: source, Inputs: st.Opened().Raw, Type: chatType,
		Title: st.Info.Title, Tags: st.Info.Tags, CreatedBy: compose.User(), Workspace: st.Info.Workspace, File: st.Info.File,
		Models: st.Info.Models, Context: st.Info.Context, AllowSecretInputs: st.Info.AllowSecretInputs})
	if err != nil {
		return chat.Outcome{}, err
	}
	if ok {
		if err := forgetRun(ctx, m, old); err != nil {
			return chat.Outcome{}, err
		}
		s.a.NoteMemory(ctx, s.local.Service.Store, m.Scope())
	}
	s.local.Supervisor.Keep(run, engine.DriveOptions{By: compose.User()})
	return s.goTo(ctx, run)
}

// forgetRun sets tombstones on what a run remembered; the history of the memory stays.
func forgetRun(ctx context.Context, m *memory.Store, run protocol.RunID) error {
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
	return m.EditAll(ctx, all, memory.Origin{By: compose.User(), Run: run})
}
