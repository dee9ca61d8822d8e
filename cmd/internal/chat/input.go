package chat

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textarea"
)

// prompt is the box in which a person writes, with what was written before.
type prompt struct {
	area    textarea.Model
	history []string
	at      int    // in history; len(history) is the draft
	draft   string // what was being written before history was looked through
}

func newPrompt(history []string) prompt {
	a := textarea.New()
	a.ShowLineNumbers = false
	a.Prompt = "> "
	a.Placeholder = "Write, or /help"
	a.CharLimit = 0
	a.SetVirtualCursor(false)
	a.SetHeight(1)
	a.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	a.Focus()
	return prompt{area: a, history: slices.Clone(history), at: len(history)}
}

// inputMax bounds the height of the box.
const inputMax = 8

// resize fits the box to its text.
func (p *prompt) resize(width, height int) {
	p.area.SetWidth(max(4, width))
	rows := 0
	for _, line := range strings.Split(p.area.Value(), "\n") {
		rows += 1 + len([]rune(line))/max(1, width-4)
	}
	p.area.SetHeight(max(1, min(rows, inputMax, height/3)))
}

// take empties the box and remembers what was in it.
func (p *prompt) take() string {
	s := strings.TrimSpace(p.area.Value())
	if s != "" && (len(p.history) == 0 || p.history[len(p.history)-1] != s) {
		p.history = append(p.history, s)
	}
	p.at, p.draft = len(p.history), ""
	p.area.Reset()
	return s
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

// command is a line that begins with a slash.
type command struct{ name, arg string }

// aliases of the commands.
var aliases = map[string]string{"c": "clear", "cp": "compact", "t": "think", "h": "help", "?": "help", "q": "quit", "exit": "quit", "usage": "cost", "$": "cost", "tasks": "task"}

// commandOf reads a line. A line with two slashes is text that begins with one.
func commandOf(line string) (command, bool) {
	if line == "$" {
		return command{name: "cost"}, true
	}
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.HasPrefix(rest, "/") || strings.Contains(line, "\n") {
		return command{}, false
	}
	name, arg, _ := strings.Cut(rest, " ")
	if full, ok := aliases[name]; ok {
		name = full
	}
	return command{name, strings.TrimSpace(arg)}, true
}

// helpText lists the commands and keys.
const helpText = `/clear    /c        clear the screen; nothing is lost, PageUp brings it back
/compact  /cp       summarise the conversation now
/reset              begin a new run; memories of this one get tombstones
/dump [path]        write the memories to a file
/think    /t        show or fold the reasoning of the last answer
/resume [cost_usd=9]  go on after an interruption, an error, or past a limit
/fork [step]        go on in a fork of this run
/cost     $ /usage  tokens and cost, by task too
/task     /tasks    the tasks of this run
/memory [words]     what is remembered
/model [name]       the model, or another one from here on
/help     /h        this
/quit     /q        leave; the run stays as it is

Enter sends, Alt+Enter or Ctrl+J begins a new line, Up and Down go through what you wrote.
PageUp and PageDown scroll, End follows again. Esc interrupts the agent. Ctrl+C twice leaves.`

// choiceOf finds the choice that a line names: by its number, value or label.
func choiceOf(w Waiting, line string) (value string, ok bool) {
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(w.Choices) {
		return w.Choices[n-1].Value, true
	}
	for _, c := range w.Choices {
		if strings.EqualFold(c.Value, line) || strings.EqualFold(c.Label, line) {
			return c.Value, true
		}
	}
	return "", false
}
