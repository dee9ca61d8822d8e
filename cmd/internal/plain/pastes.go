package plain

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Pastes are the long texts that were pasted into a box, by the words that are shown in their place. The zero value holds none.
type Pastes struct{ texts map[string]string }

// A pasted text of more bytes or lines than these is not in the box itself.
const (
	pasteMax  = 2000
	pasteRows = 12
)

// In takes a text that was pasted, and gives what is put into the box.
func (p *Pastes) In(text string) string {
	text = strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if Hidden(r) {
			return -1
		}
		return r
	}, ansi.Strip(text))
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if len(text) <= pasteMax && lines <= pasteRows {
		return text
	}
	words := fmt.Sprintf("[pasted %d: %d lines, %d bytes]", len(p.texts)+1, lines, len(text))
	if p.texts == nil {
		p.texts = map[string]string{}
	}
	p.texts[words] = text
	return words
}

// Out is the text of a box with what was pasted into it.
func (p *Pastes) Out(box string) string {
	for words, text := range p.texts {
		box = strings.ReplaceAll(box, words, text)
	}
	return box
}

// Holds reports whether a text of a box has such words.
func (p *Pastes) Holds(box string) bool {
	for words := range p.texts {
		if strings.Contains(box, words) {
			return true
		}
	}
	return false
}
