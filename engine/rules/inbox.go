package rules

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Attributed is a message from outside as an agent reads it.
func Attributed(source, text string) string { return "[message from " + source + "]\n" + text }

// FreeQuestion is the visit that waits for words of anyone, if only one waits, and for nothing else.
func (s *State) FreeQuestion() (step string, ok bool) {
	waiting := s.Waiting()
	if len(waiting) != 1 {
		return "", false
	}
	w := waiting[0]
	if len(w.Choices) > 0 || len(w.Assignees) > 0 || w.Form != (protocol.Text{}) || w.Kind != protocol.WaitQuestion && w.Kind != protocol.WaitTask {
		return "", false
	}
	return w.Step.String(), true
}

// Reads reports whether an agent may still read a message: of a run that closes these are its always roles alone.
func (s *State) Reads() bool {
	c := s.Closing
	if c == nil {
		return true
	}
	for _, list := range s.agenda.always.visits {
		if slices.ContainsFunc(list, func(v *visit) bool { return s.isAgent(v.of.Role) }) {
			return true
		}
	}
	return !c.Skipped && slices.ContainsFunc(s.prog.Workflow.Always[c.Begun:], s.isAgent)
}

// Addressed is the visit that asks a question without words while messages wait in the inbox: what it waits
// for has been said already.
func (s *State) Addressed() (step string, ok bool) {
	if len(s.Inbox) == 0 || s.Stopped {
		return "", false
	}
	if step, ok = s.FreeQuestion(); !ok {
		return "", false
	}
	w := s.Waiting()[0]
	return step, w.Kind == protocol.WaitQuestion && w.Question == protocol.Text{}
}

// Said answers such a question with all messages of the inbox.
func (s *State) Said() (protocol.Answered, error) {
	text, err := s.unread()
	if err != nil {
		return protocol.Answered{}, err
	}
	last := s.Inbox[len(s.Inbox)-1]
	return protocol.Answered{By: last.Sender(), Source: last.Source, Text: protocol.NewText(text), Messages: len(s.Inbox)}, nil
}

// Inject puts what waits in the inbox behind the injected text of a visit of role, where that is an
// agent; n is how many messages it took.
func (s *State) Inject(role, inject string) (all string, n int, err error) {
	if !s.isAgent(role) || len(s.Inbox) == 0 {
		return inject, 0, nil
	}
	said, err := s.unread()
	if err == nil && inject != "" {
		said = inject + "\n\n" + said
	}
	return said, len(s.Inbox), err
}

// unread is what waits in the inbox, with its sources.
func (s *State) unread() (string, error) {
	var parts []string
	for _, m := range s.Inbox {
		text, err := s.text(m.Text)
		if err != nil {
			return "", fmt.Errorf("a message from %s: %w", m.Source, err)
		}
		parts = append(parts, Attributed(m.Source, text))
	}
	return strings.Join(parts, "\n\n"), nil
}

func (s *State) isAgent(name string) bool {
	role, ok := s.prog.Workflow.RoleNamed(name)
	return ok && role.Action == protocol.ActPrompt
}
