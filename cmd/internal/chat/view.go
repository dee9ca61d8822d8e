package chat

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/plain"
)

// The side bar is shown when there are tasks and the screen is this wide.
const (
	sideFrom  = 90
	sideWidth = 30
)

// View draws the screen: the conversation, the choices of an open question, the box to write
// in, the status line.
func (a *App) View() tea.View {
	v := a.draw()
	// The renderer leaves out a frame that equals the one before, also after a terminal went
	// through other sizes and lost its lines. So they are made to differ where nothing is seen.
	v.Content += fmt.Sprintf("\x1b[38;5;%dm\x1b[m", a.resized)
	return v
}

func (a *App) draw() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	v.WindowTitle = "wf " + plain.Line(plain.Text(a.info.Title), 60)
	if a.width < 1 || a.height < 1 {
		return v
	}
	if a.dialog != nil {
		v.Content = strings.Join(a.dialog.lines(a.width, a.height), "\n")
		return v
	}
	width := a.width
	side := len(a.t.Tasks) > 0 && width >= sideFrom
	if side {
		width -= sideWidth + 1
	}
	a.prompt.resize(width, a.height)
	box := strings.Split(a.prompt.area.View(), "\n")
	choices := a.choiceLines(width)
	status := 1
	if a.height < 3 {
		choices, status = nil, 0
	}
	rest := a.height - len(box) - status
	choices = choices[:max(0, min(len(choices), rest-1))]
	a.scroll.width, a.scroll.height = width, max(0, rest-len(choices))
	lines := a.scroll.window(a.t.Items[a.hidden:])
	if !a.ready && len(lines) > 0 {
		lines[0] = styleDim.Render("reading…")
	}
	top := len(lines) + len(choices)
	lines = append(append(lines, choices...), box...)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], width, "")
	}
	if side {
		lines = beside(lines, a.sideLines(len(lines)), width)
	}
	if status > 0 {
		lines = append(lines, a.statusLine())
	}
	v.Content = strings.Join(lines[:min(len(lines), a.height)], "\n")
	if c := a.prompt.area.Cursor(); c != nil {
		c.Y += top
		v.Cursor = c
	}
	return v
}

// beside puts a column right of lines.
func beside(lines, column []string, width int) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l + strings.Repeat(" ", max(0, width-ansi.StringWidth(l))) + styleDim.Render("│")
		if i < len(column) {
			out[i] += column[i]
		}
	}
	return out
}

// sideLines are the tasks: the current one, its state, how many are completed.
func (a *App) sideLines(height int) []string {
	out := []string{lipgloss.NewStyle().Bold(true).Render(" Task")}
	text := func(s string, style func(...string) string) {
		for _, l := range plain.Wrap(s, sideWidth-2) {
			out = append(out, " "+style(l))
		}
	}
	if c := a.t.Tasks.Current(); c != nil {
		text(taskMarks[c.Status]+" "+firstOf(c.Goal, c.ID), styleQuestion.Render)
		if c.State != "" {
			out = append(out, "")
			text(c.State, styleDim.Render)
		}
	} else {
		text("none", styleDim.Render)
	}
	out = append(out, "")
	text(fmt.Sprintf("✓ %d completed", a.t.Tasks.Done()), styleReply.Render)
	for i := len(a.t.Tasks) - 1; i >= 0; i-- {
		if x := a.t.Tasks[i]; x != a.t.Tasks.Current() {
			text(taskMarks[x.Status]+" "+plain.Line(firstOf(x.Goal, x.ID), sideWidth-5), styleDim.Render)
		}
	}
	return out[:min(len(out), height)]
}

// choiceLines are the answers to the open question, numbered.
func (a *App) choiceLines(width int) []string {
	w, ok := a.waiting()
	if !ok || len(w.Choices) == 0 {
		return nil
	}
	out := []string{styleDim.Render("type a number and Enter:")}
	for i, c := range w.Choices {
		style := plainStyle
		if c.Primary {
			style = styleQuestion.Render
		}
		out = append(out, ansi.Truncate(style(fmt.Sprintf(" %d  %s", i+1, plain.Text(c.Label))), width, "…"))
	}
	return out
}

// statusLine is {tps} ctx {pct}% ({remaining} tok left) (turns: N) {status}.
func (a *App) statusLine() string {
	m := a.t.Metrics
	var parts []string
	if m.TPS > 0 {
		parts = append(parts, fmt.Sprintf("%.1f t/s", m.TPS))
	}
	if w := a.info.Window; w > 0 {
		parts = append(parts, fmt.Sprintf("ctx %d%% (%d tok left)", m.Context*100/w, max(0, w-m.Context)))
	} else if m.Context > 0 {
		parts = append(parts, fmt.Sprintf("ctx %d tok", m.Context))
	}
	parts = append(parts, fmt.Sprintf("(turns: %d)", m.Turns), a.word())
	line := " " + strings.Join(parts, " ")
	line = ansi.Truncate(line, a.width, "…")
	return styleStatus.Render(line + strings.Repeat(" ", max(0, a.width-ansi.StringWidth(line))))
}

// word is what there is to say at the end of the status line.
func (a *App) word() string {
	switch {
	case a.link != "":
		return "⚠ " + plain.Line(plain.Text(a.link), 200)
	case a.said != "":
		return plain.Text(a.said)
	case a.loading:
		return "reading older events…"
	case a.scroll.up > 0:
		return fmt.Sprintf("%s ↓ %d lines below (End)", a.t.Status, a.scroll.up)
	}
	if w, ok := a.waiting(); ok && w.Step != "" {
		return "your turn"
	}
	return firstOf(a.t.Status, "idle")
}
