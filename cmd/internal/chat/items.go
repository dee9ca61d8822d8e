package chat

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"wf/protocol"
)

// Kind says what an Item is.
type Kind int

// The kinds of items.
const (
	You      Kind = iota // what a person or another source said
	Reply                // what a model said
	Tool                 // a call with its result
	Note                 // what happened to the run
	Question             // what a person is asked
)

// Item is one entry of the conversation as it is shown.
type Item struct {
	Kind Kind
	Seq  protocol.Seq // of the event that began it; 0 while it is live output alone
	Step string       // whose it is, "" for the run

	Text     string
	Thinking string
	Source   string // You: who, where it is not the person at the terminal
	Open     bool   // more is coming

	Name   string // Tool
	Args   string // Tool: name=value, …
	Call   string // Tool
	Failed bool   // Tool, Note: it went wrong

	Unfolded bool // Reply: the thinking is shown
	version  int  // grows with every change, for the cache of lines
}

func (it *Item) changed() { it.version++ }

// clean makes a text fit to be shown: no escape sequences, no control characters but line
// feeds, tabs as spaces, no invalid bytes, nothing that turns the direction of writing.
func clean(s string) string {
	if plain(s) {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

// plain reports whether there is nothing to clean: printable ASCII and line feeds.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\n' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}
