package chat

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/textarea"
	"charm.land/lipgloss/v2"

	"wf/cmd/internal/ask"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// prompt is the box in which a person writes, with what was written before.
type prompt struct {
	area    textarea.Model
	history []string
	at      int    // in history; len(history) is the draft
	draft   string // what was being written before history was looked through
	width   int    // of the box
	pastes  plain.Pastes
}

func newPrompt(history []string) prompt {
	a := textarea.New()
	a.ShowLineNumbers = false
	a.SetPromptFunc(2, func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	a.Placeholder = "Write, or /help"
	a.CharLimit = 0
	a.SetVirtualCursor(false)
	a.SetHeight(1)
	a.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	looks := textarea.Styles{Focused: textarea.StyleState{Placeholder: styleDim, Prompt: styleYou}}
	looks.Blurred = looks.Focused
	looks.Cursor.Color = lipgloss.NoColor{}
	a.SetStyles(looks)
	a.Focus()
	return prompt{area: a, history: slices.Clone(history), at: len(history)}
}

// inputMax bounds the height of the box.
const inputMax = 8

// resize fits the box to its text.
func (p *prompt) resize(width, height int) {
	width = max(4, width)
	rows := max(1, min(plain.Rows(p.area.Value(), width-2, inputMax), height/3))
	if rows != p.area.Height() || width != p.width {
		p.width = width
		p.area.SetWidth(width)
		p.area.SetHeight(rows)
		p.area, _ = p.area.Update(nil) // the row of the cursor is shown
	}
}

func (p *prompt) paste(s string) { p.area.InsertString(p.pastes.In(s)) }

// take empties the box and remembers what was in it. text is that with what was pasted.
func (p *prompt) take() (line, text string) {
	line = strings.TrimSpace(p.area.Value())
	p.remember(line)
	p.area.Reset()
	return line, p.pastes.Out(line)
}

func (p *prompt) remember(line string) {
	if line != "" && (len(p.history) == 0 || p.history[len(p.history)-1] != line) {
		p.history = append(p.history, line)
	}
	p.at, p.draft = len(p.history), ""
}

// giveBack puts a line that came to nothing back in the box, if that is still empty.
func (p *prompt) giveBack(line string) {
	if line != "" && p.area.Length() == 0 {
		p.area.SetValue(line)
		p.area.MoveToEnd()
	}
}

// kept is the history for the next session: without words that stand for what will be gone.
func (p *prompt) kept() []string {
	return slices.DeleteFunc(slices.Clone(p.history), p.pastes.Holds)
}

// look goes through what was written before: −1 is older. It reports whether it did.
func (p *prompt) look(by int) bool {
	to := p.at + by
	if to < 0 || to > len(p.history) {
		return false
	}
	if p.at == len(p.history) {
		p.draft = p.area.Value()
	}
	p.at = to
	if to == len(p.history) {
		p.area.SetValue(p.draft)
	} else {
		p.area.SetValue(p.history[to])
	}
	p.area.MoveToEnd()
	return true
}

// atTop and atBottom report whether the cursor is in the first or last row of the box.
func (p *prompt) atTop() bool { return p.area.Line() == 0 && p.area.LineInfo().RowOffset == 0 }

func (p *prompt) atBottom() bool {
	at := p.area.LineInfo()
	return p.area.Line() == p.area.LineCount()-1 && at.RowOffset >= at.Height-1
}

// denial reads a line that denies a tool call, with the reason behind the number or name of that choice.
func denial(w Waiting, line string) (value, why string, ok bool) {
	first, why, _ := strings.Cut(line, " ")
	value, ok = choiceOf(w, strings.TrimRight(first, ":,"))
	return value, strings.TrimSpace(why), ok && value == protocol.Deny
}

// choiceOf finds the choice that a line names; see ask.Choice.
func choiceOf(w Waiting, line string) (value string, ok bool) {
	if i := ask.Choice(w.Choices, line); i >= 0 {
		return w.Choices[i].Value, true
	}
	return "", false
}
