package tui

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/protocol"
)

const helpText = `1 2 3, Tab     go to runs, steps, the page
j k, ↑ ↓       choose; on the page, scroll
PgUp PgDn      ten at once
[ ]            the page before, the next one
o m e d c v    Output, Messages, Events, Diff, Cost, Verify
/              show only runs that hold a word; Esc shows all
a              answer what the run waits for
r              read again
? q            this, leave`

// key takes a key press.
func (a *App) key(m tea.KeyPressMsg) tea.Cmd {
	name := m.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if a.typing != nothing {
		return a.typed(name, m.Text)
	}
	if a.help {
		a.help = false
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "?":
		a.help = true
	case "1", "2", "3":
		a.focus = pane(name[0] - '1')
	case "tab", "l", "right":
		a.focus = (a.focus + 1) % panes
	case "shift+tab", "h", "left":
		a.focus = (a.focus + panes - 1) % panes
	case "enter":
		a.focus = min(a.focus+1, mainPane)
	case "j", "down":
		return a.move(1)
	case "k", "up":
		return a.move(-1)
	case "pgdown", "ctrl+d":
		return a.move(10)
	case "pgup", "ctrl+u":
		return a.move(-10)
	case "g", "home":
		return a.move(-1 << 30)
	case "G", "end":
		return a.move(1 << 30)
	case "]":
		return a.show((a.page + 1) % pages)
	case "[":
		return a.show((a.page + pages - 1) % pages)
	case "o", "m", "e", "d", "c", "v":
		return a.show(Page(strings.Index("omedcv", name)))
	case "r":
		return tea.Batch(a.readRuns, a.readView())
	case "/":
		a.typing, a.line = filtering, []rune(a.filter)
	case "esc":
		a.filter = ""
		return a.refilter()
	case "a":
		if len(a.view.Waiting) == 0 {
			a.said = "the run waits for nobody"
			return nil
		}
		a.typing, a.line = answering, nil
	}
	return nil
}

func (a *App) show(p Page) tea.Cmd {
	a.page, a.top, a.text = p, 0, ""
	return a.readPage()
}

func (a *App) move(by int) tea.Cmd {
	switch a.focus {
	case runsPane:
		if a.run.move(by) {
			return a.chose()
		}
	case stepsPane:
		if a.step.move(by) {
			a.top, a.text = 0, ""
			return a.readPage()
		}
	default:
		a.top = max(0, a.top+by)
	}
	return nil
}

// typed takes a key of the line at the bottom.
func (a *App) typed(name, text string) tea.Cmd {
	switch name {
	case "esc":
		if a.typing == filtering {
			a.filter = ""
		}
		a.typing = nothing
		return a.refilter()
	case "enter":
		was := a.typing
		a.typing = nothing
		if was == answering {
			return a.answer(strings.TrimSpace(string(a.line)))
		}
		return nil
	case "backspace":
		if len(a.line) > 0 {
			a.line = a.line[:len(a.line)-1]
		}
	case "space":
		a.line = append(a.line, ' ')
	default:
		a.line = append(a.line, []rune(text)...)
	}
	if a.typing == filtering {
		a.filter = string(a.line)
		return a.refilter()
	}
	return nil
}

func (a *App) refilter() tea.Cmd {
	before := a.run.id
	a.run.keep(ids(a.shownRuns(), func(r Run) string { return string(r.ID) }))
	if a.run.id == before {
		return nil
	}
	return a.chose()
}

// answer gives a text, or the choice of that number, to what the run waits for.
func (a *App) answer(text string) tea.Cmd {
	if text == "" || len(a.view.Waiting) == 0 {
		return nil
	}
	q, id, ctx := a.view.Waiting[0], protocol.RunID(a.run.id), a.ctx
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Choices) {
		text = q.Choices[n-1].Value
	}
	return func() tea.Msg { return did{a.source.Answer(context.WithoutCancel(ctx), id, q.Step, text)} }
}
