package memory

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/protocol"
)

// Bounds of what a prompt or a tool result holds, in runes.
const (
	shownMax    = 4_000  // of one memory in a result
	resultMax   = 20_000 // of one result
	recalledMax = 2_000  // of one memory in a prompt
	pinsMax     = 16_000 // of all pinned ones in a prompt
	listedMax   = 300    // of one memory in a list
)

// head names a memory: [id:12] [tags:a,b] [pinned].
func head(m Memory, distance *float64) string {
	s := fmt.Sprintf("[id:%d] [tags:%s]", m.ID, TagList(m.Tags))
	if m.Pinned {
		s += " [pinned]"
	}
	if m.Place != nil {
		s += " [" + PlaceText(*m.Place) + "]"
	}
	if distance != nil {
		s += fmt.Sprintf(" [distance:%.3f]", *distance)
	}
	return s
}

// PlaceText is where a memory comes from: cas/gate.go:20-43. A name that would be misread is
// written as a JSON string.
func PlaceText(p protocol.MemoryPlace) string {
	return fmt.Sprintf("%s:%d-%d", unmistaken(p.File), p.Line, p.End)
}

// unmistaken is a name between brackets; one that would be misread is a JSON string.
func unmistaken(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '[' || r == ']' }) {
		return strconv.Quote(name)
	}
	return name
}

// cut is a text with at most n runes, and how many more there are.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	more := utf8.RuneCountInString(s) - n
	if more <= 0 {
		return s
	}
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return strings.TrimRight(s[:at], " \n") + fmt.Sprintf("…[%d more]", more)
}

// hitsText is the result of a question.
func (s *Store) hitsText(ctx context.Context, hits []Hit) (string, error) {
	if len(hits) == 0 {
		return "nothing is remembered that fits", nil
	}
	var parts []string
	left := resultMax
	for i, h := range hits {
		text, err := s.Text(ctx, h.Memory)
		if err != nil {
			return "", err
		}
		part := head(h.Memory, h.Distance) + "\n" + cut(text, shownMax)
		if left -= utf8.RuneCountInString(part); left < 0 && i > 0 {
			parts = append(parts, fmt.Sprintf("…[%d more memories; ask for fewer with limit]", len(hits)-i))
			break
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n\n"), nil
}

// ListText is a listing, as list_memories gives it.
func (s *Store) ListText(ctx context.Context, l Listing) (string, error) {
	var b strings.Builder
	lines := func(heading string, all []Memory) error {
		if len(all) == 0 {
			return nil
		}
		fmt.Fprintf(&b, "%s\n", heading)
		for _, m := range all {
			text, err := s.Text(ctx, m)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %s\n", head(m, nil), cut(strings.Join(strings.Fields(text), " "), listedMax))
		}
		return nil
	}
	var anchor []Memory
	if l.Anchor != nil {
		anchor = []Memory{*l.Anchor}
	}
	if err := cmp.Or(lines("Anchor:", anchor), lines("Pinned:", l.Pinned), lines("Recent:", l.Recent)); err != nil {
		return "", err
	}
	switch {
	case l.More > 0:
		fmt.Fprintf(&b, "…[%d older ones; recall and context_for find them]\n", l.More)
	case b.Len() == 0:
		return "nothing is remembered yet", nil
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// Standing is what every new context begins with: the anchor memory and the pinned ones, the
// oldest of which give way where they are too many.
func (s *Store) Standing(ctx context.Context) (string, error) {
	l, err := s.List(ctx, 0)
	if err != nil {
		return "", err
	}
	var parts []string
	if l.Anchor != nil {
		text, err := s.Text(ctx, *l.Anchor)
		if err != nil {
			return "", err
		}
		parts = append(parts, "[anchor memory]"+s.author(*l.Anchor)+"\n"+cut(text, pinsMax/2))
	}
	blocks := make([]string, len(l.Pinned))
	left, from := pinsMax, len(l.Pinned)
	for ; from > 0; from-- {
		m := l.Pinned[from-1]
		if blocks[from-1], err = s.block(ctx, "[pinned memory]", m); err != nil {
			return "", err
		}
		if left -= utf8.RuneCountInString(blocks[from-1]); left < 0 {
			break
		}
	}
	if from > 0 {
		parts = append(parts, fmt.Sprintf("…[%d older pinned memories; list_memories shows them]", from))
	}
	return strings.Join(append(parts, blocks[from:]...), "\n\n"), nil
}

// Recalled are hits as they enter a prompt.
func (s *Store) Recalled(ctx context.Context, hits []Hit) (string, error) {
	var parts []string
	for _, h := range hits {
		b, err := s.block(ctx, "[recalled memory]", h.Memory)
		if err != nil {
			return "", err
		}
		parts = append(parts, b)
	}
	return strings.Join(parts, "\n\n"), nil
}

// author says that an agent wrote a memory of the user: it enters prompts of other workflows.
func (s *Store) author(m Memory) string {
	if !strings.HasPrefix(s.c.Scope, protocol.MemoryUser+"/") || m.Run == "" {
		return ""
	}
	return " [written by the agent " + unmistaken(m.By) + "]"
}

// block is one memory in a prompt. It does not say that it is pinned, which may change.
func (s *Store) block(ctx context.Context, mark string, m Memory) (string, error) {
	text, err := s.Text(ctx, m)
	if err != nil {
		return "", err
	}
	m.Pinned = false
	return mark + " " + head(m, nil) + s.author(m) + "\n" + cut(text, recalledMax), nil
}
