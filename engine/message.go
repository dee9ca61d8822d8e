package engine

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/cas"
	"wf/protocol"
)

const (
	sourceMax  = 64       // of the name of a source, in runes
	messageMax = 64 << 10 // of a message, in bytes
)

// Message hands a run a message from outside: another program, a chat, a sensor. Where the
// run waits for a free answer it is that answer. Else it is queued: the next agent that enters
// a visit, or goes on with one that was interrupted, reads it, with its source, at the tail of
// its prompt; or it is the answer to the next question without words. Secrets are hidden in
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
	if err := e.Own(ctx, run); err != nil {
		return err
	}
	return e.insist(ctx, run, func(s *State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		hide := hider(s.prog)
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

// messages puts what waits in the inbox behind the injected text of an agent's visit; n is how
// many it took.
func (d *driver) messages(role, inject string) (all string, n int, err error) {
	if !d.s.isAgent(role) || len(d.s.inbox) == 0 {
		return inject, 0, nil
	}
	said, err := d.s.unread()
	if err == nil && inject != "" {
		said = inject + "\n\n" + said
	}
	return said, len(d.s.inbox), err
}

// unread is what waits in the inbox, with its sources.
func (s *State) unread() (string, error) {
	var parts []string
	for _, m := range s.inbox {
		text, err := textOf(s.read, m.Text)
		if err != nil {
			return "", fmt.Errorf("a message from %s: %w", m.Source, err)
		}
		parts = append(parts, attributed(m.Source, text))
	}
	return strings.Join(parts, "\n\n"), nil
}

// interject adds another start of an agent's visit that was interrupted, with the messages that
// came meanwhile. Its prompt is another one from there on.
func (d *driver) interject(b *batch, step string, v *visit, started protocol.StepStarted) error {
	inject, err := textOf(d.s.read, protocol.Text{Link: v.inject})
	if err != nil {
		return err
	}
	if inject, started.Messages, err = d.messages(started.Role, inject); err != nil {
		return err
	}
	if started.Messages > 0 {
		started.Inject = b.payload(d, inject)
	}
	return b.draft(d, step, started)
}

// addressed is the visit that asks a question without words while messages wait: it is the turn
// of those who talk with the run, and they have said something already.
func (d *driver) addressed() (step string, ok bool) {
	step, ok = d.s.freeQuestion()
	if !ok || len(d.s.inbox) == 0 || d.s.stop != nil || d.work[step] != nil {
		return "", false
	}
	w := d.s.Waiting()[0]
	return step, w.Kind == protocol.WaitQuestion && w.Question == protocol.Text{}
}

// converse answers such a question with the messages.
func (d *driver) converse(b *batch) error {
	step, ok := d.addressed()
	if !ok {
		return nil
	}
	said, err := d.s.unread()
	if err != nil {
		return err
	}
	by := d.s.inbox[len(d.s.inbox)-1].Source
	return b.draft(d, step, protocol.Answered{By: by, Source: by, Text: protocol.NewText(said), Messages: len(d.s.inbox)})
}

func (s *State) isAgent(name string) bool {
	role, ok := s.prog.Workflow.RoleNamed(name)
	return ok && role.Action == protocol.ActPrompt
}

// Compact has the next visit of an agent begin with a compaction of its conversation. A run
// that has ended is an error wrapping protocol.ErrFinal.
func (e *Engine) Compact(ctx context.Context, run protocol.RunID, by string) error {
	if err := e.Own(ctx, run); err != nil {
		return err
	}
	return e.insist(ctx, run, func(s *State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		return []cas.Draft{{Data: protocol.CompactionAsked{By: by}}}, nil, nil
	})
}
