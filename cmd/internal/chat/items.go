package chat

import (
	"strings"

	"wf/cmd/internal/markdown"
	"wf/cmd/internal/plain"
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
	Asked  bool   // Tool: a person is asked whether it may
	Failed bool   // Tool, Note: it went wrong

	Unfolded bool // Reply: the thinking is shown
	version  int  // grows with every change, for the cache of lines

	liveText, liveThinking live
	shown                  markdown.Growing
}

// live is what came of a text so far, as it came, and fit to be shown.
type live struct {
	raw   strings.Builder
	clean strings.Builder // of the lines that are complete
	upTo  int             // how much of raw is in clean
}

// text makes what came fit to be shown. Only what came since the last line is looked at.
func (l *live) text() string {
	raw := l.raw.String()
	if end := strings.LastIndexByte(raw, '\n') + 1; end > l.upTo {
		l.clean.WriteString(plain.Text(raw[l.upTo:end]))
		l.upTo = end
	}
	return l.clean.String() + plain.Text(raw[l.upTo:])
}

func (it *Item) changed() { it.version++ }

// settle makes what came live fit to be shown.
func (it *Item) settle() {
	if it.liveText.raw.Len() > 0 {
		it.Text = it.liveText.text()
	}
	if it.liveThinking.raw.Len() > 0 {
		it.Thinking = it.liveThinking.text()
	}
}
