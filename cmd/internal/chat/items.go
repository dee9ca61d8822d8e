package chat

import (
	"strings"

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
	Failed bool   // Tool, Note: it went wrong

	Unfolded bool // Reply: the thinking is shown
	version  int  // grows with every change, for the cache of lines

	liveText, liveThinking strings.Builder // as it came; made harmless when it is drawn
}

func (it *Item) changed() { it.version++ }

// settle makes what came live fit to be shown.
func (it *Item) settle() {
	if it.liveText.Len() > 0 {
		it.Text = plain.Text(it.liveText.String())
	}
	if it.liveThinking.Len() > 0 {
		it.Thinking = plain.Text(it.liveThinking.String())
	}
}

// whole takes the place of what came live.
func (it *Item) whole(text string) {
	it.liveText.Reset()
	it.Text = text
}
