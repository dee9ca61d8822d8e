package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/plain"
)

var keys = [][2]string{
	{"1 2 3, Tab", "go to runs, steps, the page; ← → too"},
	{"j k, ↑ ↓", "choose; on the page, scroll"},
	{"Enter", "from a run to its steps, to their page"},
	{"Space", "unfold a fan-out that is one line, fold it again"},
	{"PgUp PgDn", "a screenful; g G to the ends"},
	{"[ ]", "the page before, the next one"},
	{"o m e d c v", "Output, Messages, Events, Diff, Cost, Verify"},
	{"< >", "earlier and later events, where there are more"},
	{"H L", "move events, diff and cost sideways"},
	{"/", "show only runs that hold a word; Esc shows all"},
	{"a", "answer what the run waits for, a form field by field"},
	{"R", "resume the run"},
	{"F", "fork it at the step; asks first"},
	{"X", "cancel it; asks first"},
	{"D", "delete it, once it has ended; asks first"},
	{"r", "read again; what moves is followed anyway"},
	{"!", "the last error as a whole"},
	{"Ctrl-Z", "back to the shell; fg goes on"},
	{"q", "leave; runs that go on here are suspended"},
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
	switch {
	case name == "ctrl+z":
		return tea.Suspend
	case a.over != nil && name != "ctrl+c":
		return a.overlayKey(name)
	case a.form != nil:
		return a.fill(m)
	case name == "ctrl+c":
		return tea.Quit
	case a.filtering:
		return a.typed(name, m.Text)
	}
	a.said = ""
	switch name {
	case "q":
		return tea.Quit
	case "?":
		a.over = &overlay{title: "Keys", hint: "any other key closes", lines: helpLines}
	case "!":
		if a.whole != "" {
			a.over = text("The last error", a.whole)
		}
	case "1", "2", "3":
		a.focus = pane(name[0] - '1')
	case "tab", "l", "right":
		a.focus = (a.focus + 1) % panes
	case "shift+tab", "h", "left":
		a.focus = (a.focus + panes - 1) % panes
	case "space":
		return a.fold()
	case "enter":
		if a.focus == stepsPane && strings.HasSuffix(a.step.id, hiddenBehind) {
			return a.fold()
		}
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
	case "<":
		if a.before > 0 {
			a.parts, a.part, a.top = append(a.parts, a.part), a.before, 0
			a.before = 0
			return a.readPage()
		}
	case ">":
		if n := len(a.parts); n > 0 {
			a.parts, a.part, a.top = a.parts[:n-1], a.parts[n-1], 0
			return a.readPage()
		}
	case "r":
		return tea.Batch(a.readRuns("", ""), a.readView(), a.readPage())
	case "/":
		a.filtering, a.line = true, []rune(a.runs.filter)
	case "esc":
		a.runs.look("")
		return a.refilter()
	case "a", "R", "X", "F", "D":
		return a.act(name)
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
	a.page = p
	a.leavePart()
	return a.readPage()
}

func (a *App) move(by int) tea.Cmd {
	switch a.focus {
	case runsPane:
		if a.run.move(by) {
			return a.chose()
		}
		return a.readOlder()
	case stepsPane:
		if a.step.move(by) {
			a.leavePart()
			return tea.Batch(a.readPage(), a.readEarlier())
		}
	default:
		a.top = max(0, a.top+by)
	}
	return nil
}

// typed takes a key of the filter.
func (a *App) typed(name, text string) tea.Cmd {
	switch name {
	case "esc":
		a.filtering = false
		a.runs.look("")
		return a.refilter()
	case "enter":
		a.filtering = false
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
	a.runs.look(string(a.line))
	if a.runs.next == "" || a.runs.filter == "" { // all of them were read
		return a.refilter()
	}
	return tea.Batch(a.refilter(), a.readRuns(a.runs.filter, ""))
}
