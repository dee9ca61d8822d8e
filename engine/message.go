package engine

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/cas"
	"wf/engine/rules"
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
// it before it is stored. A run that has ended, or closes without an agent, is an error wrapping protocol.ErrFinal, an
// empty text or a source that is no short printable name one wrapping protocol.ErrUsage.
func (e *Engine) Message(ctx context.Context, run protocol.RunID, source, text string) error {
	return e.MessageBy(ctx, run, "", source, text)
}

// MessageBy is Message of a sender who is known, whatever the source says; "" is that nobody is.
func (e *Engine) MessageBy(ctx context.Context, run protocol.RunID, by, source, text string) error {
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
	return e.insist(ctx, run, func(s *rules.State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		if !s.Reads() {
			return nil, nil, protocol.ErrFinal.With("wf fork goes on from any of its steps", "run %s closes: none of its agents reads a message any more", run)
		}
		hide := hider(s.Program())
		m := protocol.MessageIn{By: by, Source: source, Text: protocol.NewText(hide.String(strings.ToValidUTF8(text, "\uFFFD")))}
		if step, ok := s.FreeQuestion(); ok {
			return []cas.Draft{{Step: step, Data: protocol.Answered{By: m.Sender(), Source: source, Text: protocol.NewText(rules.Attributed(m.Source, m.Text.S))}}}, nil, nil
		}
		return []cas.Draft{{Data: m}}, nil, nil
	})
}

// interject adds another start of a visit that was interrupted; of an agent with the messages that
// came meanwhile. Its prompt is another one from there on.
func (d *driver) interject(b *batch, step string, started protocol.StepStarted) error {
	inject, err := textOf(d.from.read, protocol.Text{Link: started.Inject})
	if err != nil {
		return err
	}
	if inject, started.Messages, err = d.s.Inject(started.Role, inject); err != nil {
		return err
	}
	if started.Messages > 0 {
		started.Inject = b.payload(d, inject)
	}
	return b.draft(d, step, started)
}

// addressed is the visit that the messages in the inbox answer, unless it is performed.
func (d *driver) addressed() (step string, ok bool) {
	step, ok = d.s.Addressed()
	return step, ok && d.work[step] == nil
}

// converse answers it with them.
func (d *driver) converse(b *batch) error {
	step, ok := d.addressed()
	if !ok {
		return nil
	}
	said, err := d.s.Said()
	if err != nil {
		return err
	}
	return b.draft(d, step, said)
}

// Compact has the next visit of an agent begin with a compaction of its conversation. A run
// that has ended is an error wrapping protocol.ErrFinal.
func (e *Engine) Compact(ctx context.Context, run protocol.RunID, by string) error {
	if err := e.Own(ctx, run); err != nil {
		return err
	}
	return e.insist(ctx, run, func(s *rules.State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		return []cas.Draft{{Data: protocol.CompactionAsked{By: by}}}, nil, nil
	})
}
