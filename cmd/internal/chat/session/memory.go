package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"wf/cmd/internal/chat"
	"wf/protocol"
)

// far is the error of what needs the store of the agent.
var far = protocol.ErrUsage.With("wf memory, where the agent is", "the memories are with the agent: wf memory shows them there")

const noMemory = "this agent has no memory; memory: true gives it one"

// memories shows what is remembered, or what a text finds of it.
func (s *Session) memories(ctx context.Context, text string) (chat.Outcome, error) {
	if s.at.Near == nil {
		return chat.Outcome{}, far
	}
	scope, found, err := s.at.Near.Remembered(ctx, s.run(), text)
	if err == nil && scope == "" {
		return chat.Outcome{Text: noMemory}, nil
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
		b.WriteString("\n  " + strings.ReplaceAll(strings.TrimSpace(x.Text), "\n", "\n  ") + "\n\n")
	}
	return chat.Outcome{Dialog: true, Title: "Remembered in " + scope, Text: cmp.Or(b.String(), "nothing")}, err
}

// dump writes the memory to a file. One that the person did not name is not written over.
func (s *Session) dump(ctx context.Context, name string) (chat.Outcome, error) {
	if s.at.Near == nil {
		return chat.Outcome{}, far
	}
	path := cmp.Or(name, "memories.json")
	if _, err := os.Stat(path); err == nil && name == "" {
		return chat.Outcome{}, protocol.ErrUsage.With("", "%s is there already; /dump PATH writes elsewhere", path)
	}
	return chat.Outcome{Text: "the memories are in " + path}, s.at.Dump(ctx, s.run(), path)
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
