package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
)

// chatMemory is the scope of the memory of the agent that is talked with; "" is that it has none.
func (s *chatSession) chatMemory(ctx context.Context) (scope string, err error) {
	if s.local == nil {
		return "", fail(protocol.ErrUsage, "wf memory ls --scopes lists the memories there", "a chat with a daemon elsewhere does not know which memory is its agent's")
	}
	st, err := s.local.Service.Engine.State(ctx, s.current())
	if err != nil {
		return "", err
	}
	for _, r := range st.Program().Workflow.Roles {
		if r.Action == protocol.ActPrompt && r.Memory != nil {
			return compose.AgentScope(st.Program().Workflow.Name, r), nil
		}
	}
	return "", nil
}

// memories shows what is remembered, or writes it to a file.
func (s *chatSession) memories(ctx context.Context, c chat.Command) (chat.Outcome, error) {
	scope, err := s.chatMemory(ctx)
	if err != nil {
		return chat.Outcome{}, err
	}
	if scope == "" {
		return chat.Outcome{Text: "this agent has no memory; memory: true gives it one"}, nil
	}
	m := s.local.Service
	if c.Action == chat.Dump {
		path := cmp.Or(c.Arg, "memories.json")
		if _, err := os.Stat(path); err == nil && c.Arg == "" {
			return chat.Outcome{}, usagef("%s is there already; /dump PATH writes elsewhere", path)
		}
		if err := s.a.memoryDump(ctx, m, scope, []string{path}); err != nil {
			return chat.Outcome{}, err
		}
		return chat.Outcome{Text: "the memories are in " + path}, nil
	}
	var found []api.MemoryItem
	if c.Arg != "" {
		got, err := m.Recall(ctx, api.Recall{Scope: scope, Text: c.Arg})
		if err != nil {
			return chat.Outcome{}, err
		}
		found = got.Items
	} else {
		got, err := m.Memories(ctx, api.MemoryQuery{Scope: scope, Part: api.Part{Limit: 100}})
		if err != nil {
			return chat.Outcome{}, err
		}
		found = got.Items
	}
	var b strings.Builder
	for _, x := range found {
		fmt.Fprintf(&b, "%d%s", x.ID, map[bool]string{true: " pinned"}[x.Pinned])
		if len(x.Tags) > 0 {
			b.WriteString(" [" + strings.Join(x.Tags, ", ") + "]")
		}
		if x.Distance != nil {
			fmt.Fprintf(&b, " %.2f away", *x.Distance)
		}
		b.WriteString("\n  " + strings.ReplaceAll(strings.TrimSpace(x.Content), "\n", "\n  ") + "\n\n")
	}
	if b.Len() == 0 {
		b.WriteString("nothing")
	}
	return chat.Outcome{Dialog: true, Title: "Remembered in " + scope, Text: b.String()}, nil
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
	scope, err := s.chatMemory(ctx)
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
	if scope != "" {
		if err := forgetRun(ctx, s.local.Service, scope, old); err != nil {
			return chat.Outcome{}, err
		}
	}
	s.local.Supervisor.Keep(run, engine.DriveOptions{By: compose.User()})
	return s.goTo(ctx, run)
}

// forgetRun sets tombstones on what a run remembered; the history of the memory stays.
func forgetRun(ctx context.Context, m api.Memory, scope string, run protocol.RunID) error {
	l, err := m.Memories(ctx, api.MemoryQuery{Scope: scope, Oldest: true, Sums: true})
	if err != nil {
		return err
	}
	c := api.MemoryChanges{Scope: scope}
	for _, x := range l.Items {
		if x.Run == run {
			c.Changes = append(c.Changes, api.MemoryChange{ID: x.ID, Remove: true})
		}
	}
	if len(c.Changes) == 0 {
		return nil
	}
	_, err = m.ChangeMemories(ctx, c)
	return err
}
