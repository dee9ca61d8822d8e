package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/protocol"
)

// far is the error of what needs the store of the agent.
var far = protocol.ErrUsage.With("wf memory, where the agent is", "the memories are with the agent: wf memory shows them there")

const noMemory = "this agent has no memory; memory: true gives it one"

// memories shows what is remembered, or what a text finds of it.
func (s *Session) memories(ctx context.Context, text string) (chat.Outcome, error) {
	scope, err := s.memory(ctx)
	if err != nil {
		return chat.Outcome{}, err
	}
	if scope == "" {
		return chat.Outcome{Text: noMemory}, nil
	}
	found, err := s.found(ctx, scope, text)
	if err != nil {
		return chat.Outcome{}, err
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
	return chat.Outcome{Dialog: true, Title: "Remembered in " + scope, Text: cmp.Or(b.String(), "nothing")}, nil
}

// remembered is how many memories are shown where no text is asked for.
const remembered = 100

func (s *Session) found(ctx context.Context, scope, text string) ([]api.MemoryItem, error) {
	if text != "" {
		got, err := s.at.Service.Recall(ctx, api.Recall{Scope: scope, Text: text})
		if err != nil {
			return nil, err
		}
		return got.Items, nil
	}
	got, err := s.at.Service.Memories(ctx, api.MemoryQuery{Scope: scope, Part: api.Part{Limit: remembered}})
	if err != nil {
		return nil, err
	}
	return got.Items, nil
}

// memory is the scope of the memory of the agent, "" for none.
func (s *Session) memory(ctx context.Context) (scope string, err error) {
	if s.at.Near == nil {
		return "", far
	}
	agent, err := s.at.Near.Agent(ctx, s.run())
	return agent.Memory, err
}

// dump writes the memory to a file. One that the person did not name is not written over.
func (s *Session) dump(ctx context.Context, name string) (chat.Outcome, error) {
	scope, err := s.memory(ctx)
	if err != nil {
		return chat.Outcome{}, err
	}
	if scope == "" {
		return chat.Outcome{Text: noMemory}, nil
	}
	path := cmp.Or(name, "memories.json")
	if _, err := os.Stat(path); err == nil && name == "" {
		return chat.Outcome{}, protocol.ErrUsage.With("", "%s is there already; /dump PATH writes elsewhere", path)
	}
	return chat.Outcome{Text: "the memories are in " + path}, s.at.Dump(ctx, scope, path)
}

// reset begins the workflow anew.
func (s *Session) reset(ctx context.Context) (chat.Outcome, error) {
	if s.at.Near == nil {
		return chat.Outcome{}, protocol.ErrUsage.With("wf chat begins a new one there", "a chat with a daemon elsewhere is not reset from here: /quit, and wf chat begins a new one")
	}
	run, err := s.at.Near.Again(ctx, s.run())
	if err != nil {
		return chat.Outcome{}, err
	}
	return chat.Outcome{Moved: true}, s.goTo(ctx, run)
}
