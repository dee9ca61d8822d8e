package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/cas"
	"wf/protocol"
	"wf/roles"
)

const (
	sourceMax  = 64       // of the name of a source, in runes
	messageMax = 64 << 10 // of a message, in bytes
)

// Message hands a run a message from outside: another program, a chat, a sensor. Where the
// run waits for a free answer it is that answer. Else it is queued, and the next agent that
// enters a visit reads it, with its source, at the tail of its prompt. Secrets are hidden in
// it before it is stored. A run that has ended is an error wrapping protocol.ErrFinal, an
// empty text or a source that is no short printable name one wrapping protocol.ErrUsage.
func (e *Engine) Message(ctx context.Context, run protocol.RunID, source, text string) error {
	if source == "" || utf8.RuneCountInString(source) > sourceMax || strings.ContainsFunc(source, func(r rune) bool { return !unicode.IsPrint(r) || r == ']' }) {
		return fmt.Errorf("message to run %s: the source %.80q is no name of 1 to %d printable characters: %w", run, source, sourceMax, protocol.ErrUsage)
	}
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("message from %s to run %s: it is empty: %w", source, run, protocol.ErrUsage)
	}
	if len(text) > messageMax {
		return fmt.Errorf("message from %s to run %s: %d bytes, at most %d are taken; put it in a file of the workspace and name that: %w", source, run, len(text), messageMax, protocol.ErrUsage)
	}
	return e.insist(ctx, run, func(s *State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		hide := roles.NewRedactor(roles.Secrets(os.Environ(), s.prog.Workflow.Secrets))
		m := protocol.MessageIn{Source: source, Text: protocol.NewText(hide.String(strings.ToValidUTF8(text, "\uFFFD")))}
		if step, ok := s.freeQuestion(); ok {
			return []cas.Draft{{Step: step, Data: protocol.Answered{By: source, Source: source, Text: protocol.NewText(attributed(m.Source, m.Text.S))}}}, nil, nil
		}
		return []cas.Draft{{Data: m}}, nil, nil
	})
}

// freeQuestion is the visit that waits for words, if only one waits, and for nothing else.
func (s *State) freeQuestion() (step string, ok bool) {
	waiting := s.Waiting()
	if len(waiting) != 1 {
		return "", false
	}
	w := waiting[0]
	if len(w.Choices) > 0 || w.Form != (protocol.Text{}) || w.Kind != protocol.WaitQuestion && w.Kind != protocol.WaitTask {
		return "", false
	}
	return w.Step.String(), true
}

// attributed is a message as an agent reads it.
func attributed(source, text string) string { return "[message from " + source + "]\n" + text }

// messages puts what waits in the inbox behind the injected text of an agent's new visit; n
// is how many it took.
func (d *driver) messages(x Decision, inject string) (all string, n int, err error) {
	if !d.s.isAgent(x.Role) || x.Empty {
		return inject, 0, nil
	}
	parts := make([]string, 0, 1+len(d.s.inbox))
	if inject != "" {
		parts = append(parts, inject)
	}
	for _, m := range d.s.inbox {
		text, err := textOf(d.s.read, m.Text)
		if err != nil {
			return "", 0, fmt.Errorf("a message from %s: %w", m.Source, err)
		}
		parts = append(parts, attributed(m.Source, text))
	}
	return strings.Join(parts, "\n\n"), len(d.s.inbox), nil
}

func (s *State) isAgent(name string) bool {
	role, ok := s.prog.Workflow.RoleNamed(name)
	return ok && role.Action == protocol.ActPrompt
}

// Compact has the next visit of an agent begin with a compaction of its conversation. A run
// that has ended is an error wrapping protocol.ErrFinal.
func (e *Engine) Compact(ctx context.Context, run protocol.RunID, by string) error {
	return e.insist(ctx, run, func(s *State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		return []cas.Draft{{Data: protocol.CompactionAsked{By: by}}}, nil, nil
	})
}
