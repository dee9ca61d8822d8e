package tui

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

var keys = [][2]string{
	{"1 2 3, Tab", "go to runs, steps, the page; ← → too"},
	{"j k, ↑ ↓", "choose; on the page, scroll"},
	{"Enter", "from a run to its steps, to their page"},
	{"PgUp PgDn", "a screenful; g G to the ends"},
	{"[ ]", "the page before, the next one"},
	{"o m e d c v", "Output, Messages, Events, Diff, Cost, Verify"},
	{"H L", "move events, diff and cost sideways"},
	{"/", "show only runs that hold a word; Esc shows all"},
	{"a", "answer what the run waits for"},
	{"r", "read again; what moves is followed anyway"},
	{"q", "leave"},
}

func helpLines(width int) []string {
	var out []string
	for _, k := range keys {
		for i, l := range plain.Wrap(k[1], max(1, width-14)) {
			name := ""
			if i == 0 {
				name = k[0]
			}
			out = append(out, heading.Render(plain.Pad(name, 14))+l)
		}
	}
	return out
}

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
	a.said = ""
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
		return a.move(a.screenful())
	case "pgup", "ctrl+u":
		return a.move(-a.screenful())
	case "L", "shift+right":
		a.left += sideways
	case "H", "shift+left":
		a.left = max(0, a.left-sideways)
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
		q, ok := a.question()
		if !ok {
			a.said = "the run waits for nobody"
			return nil
		}
		a.typing, a.line = answering, nil
		if q.Step != a.step.id { // what is answered is shown
			a.step.id, a.top, a.left, a.text = q.Step, 0, 0, ""
			return a.readPage()
		}
	}
	return nil
}

// sideways is how far a page in columns moves at a time.
const sideways = 8

// screenful is how far PgDn goes.
func (a *App) screenful() int {
	if a.focus == mainPane {
		return max(1, a.room-1)
	}
	return max(1, a.height/2-3)
}

func (a *App) show(p Page) tea.Cmd {
	a.page, a.top, a.left, a.text = p, 0, 0, ""
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
	a.run.keep(ids(a.shownRuns(), func(r api.Row) string { return string(r.ID) }))
	if a.run.id == before {
		return nil
	}
	return a.chose()
}

// question is the one that the chosen step asks, or the first that is open.
func (a *App) question() (api.Waiting, bool) {
	for _, q := range a.view.Waiting {
		if q.Step == a.step.id {
			return q, true
		}
	}
	if len(a.view.Waiting) == 0 {
		return api.Waiting{}, false
	}
	return a.view.Waiting[0], true
}

// answer gives a text, or the choice of that number, to what the run waits for.
func (a *App) answer(text string) tea.Cmd {
	q, ok := a.question()
	if text == "" || !ok {
		return nil
	}
	id, ctx := protocol.RunID(a.run.id), a.ctx
	number, rest, _ := strings.Cut(text, " ")
	if n, err := strconv.Atoi(number); err == nil && (rest == "" || q.Shown != "") && n >= 1 && n <= len(q.Choices) {
		text = strings.TrimSpace(q.Choices[n-1].Value + " " + rest) // behind a denial, the reason
	}
	return func() tea.Msg { return did{a.source.Answer(context.WithoutCancel(ctx), id, q, text)} }
}
