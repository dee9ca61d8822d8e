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

// shown is how many memories are shown where none is asked for.
const shown = 100

var errElsewhere = protocol.ErrUsage.With("wf memory ls --scopes lists the memories there", "a chat with a daemon elsewhere does not know which memory is its agent's")

const noMemory = "this agent has no memory; memory: true gives it one"

// scope is that of the memory of the agent, "" for none.
func (s *Session) scope() (string, error) {
	if s.at.Near == nil {
		return "", errElsewhere
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent.Memory, nil
}

// memories shows what is remembered, or what a text finds of it.
func (s *Session) memories(ctx context.Context, text string) (chat.Outcome, error) {
	scope, err := s.scope()
	switch {
	case err != nil:
		return chat.Outcome{}, err
	case scope == "":
		return chat.Outcome{Text: noMemory}, nil
	}
	found, err := s.find(ctx, scope, text)
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

func (s *Session) find(ctx context.Context, scope, text string) ([]api.MemoryItem, error) {
	if text != "" {
		got, err := s.at.Service.Recall(ctx, api.Recall{Scope: scope, Text: text})
		if err != nil {
			return nil, err
		}
		return got.Items, nil
	}
	got, err := s.at.Service.Memories(ctx, api.MemoryQuery{Scope: scope, Part: api.Part{Limit: shown}})
	if err != nil {
		return nil, err
	}
	return got.Items, nil
}

// dump writes the memory to a file. One that the person did not name is not written over.
func (s *Session) dump(ctx context.Context, name string) (chat.Outcome, error) {
	scope, err := s.scope()
	switch {
	case err != nil:
		return chat.Outcome{}, err
	case scope == "":
		return chat.Outcome{Text: noMemory}, nil
	}
	path := cmp.Or(name, "memories.json")
	if _, err := os.Stat(path); err == nil && name == "" {
		return chat.Outcome{}, protocol.ErrUsage.With("", "%s is there already; /dump PATH writes elsewhere", path)
	}
	return chat.Outcome{Text: "the memories are in " + path}, s.at.Dump(ctx, scope, path)
}

// reset begins the workflow anew; what this run remembered gets tombstones.
func (s *Session) reset(ctx context.Context) (chat.Outcome, error) {
	if s.at.Near == nil {
		return chat.Outcome{}, protocol.ErrUsage.With("wf chat begins a new one there", "a chat with a daemon elsewhere is not reset from here: /quit, and wf chat begins a new one")
	}
	old := s.run()
	run, err := s.at.Near.Again(ctx, old, func() error { return s.forget(ctx, old) })
	if err != nil {
		return chat.Outcome{}, err
	}
	return chat.Outcome{Moved: true}, s.goTo(ctx, run)
}

// forget sets tombstones on what a run remembered; the history of the memory stays.
func (s *Session) forget(ctx context.Context, run protocol.RunID) error {
	scope, err := s.scope()
	if err != nil || scope == "" {
		return err
	}
	l, err := s.at.Service.Memories(ctx, api.MemoryQuery{Scope: scope, Oldest: true, Sums: true})
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
	_, err = s.at.Service.ChangeMemories(ctx, c)
	return err
}
