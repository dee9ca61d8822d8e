package chat

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// The side bar is shown when there are tasks and the screen is this wide; on a narrower one the
// task stands in the line above the box. A screen that is lower than ruleFrom has no such line.
const (
	sideFrom  = 90
	sideWidth = 30
	ruleFrom  = 9
)

// View draws the screen: the conversation, the choices of an open question, the box to write
// in, the status line.
func (a *App) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	v.WindowTitle = "wf " + plain.Line(plain.Text(a.info.Title), 60)
	if a.width < 1 || a.height < 1 {
		return v
	}
	if a.panel != nil {
		v.Content = plain.Painted(strings.Join(a.panel.draw(a.width, a.height), "\n"))
		return v
	}
	width := a.width
	tasks := a.tasks()
	side := len(tasks) > 0 && width >= sideFrom
	if side {
		width -= sideWidth + 1
	}
	a.prompt.resize(width, a.height)
	box := strings.Split(a.prompt.area.View(), "\n")
	above := a.choiceLines(width)
	if list, _ := begunWith(a.prompt.area.Value()); len(list) > 0 {
		above = list
		for i := range above {
			above[i] = styleDim.Render(above[i])
		}
	}
	if list := a.completeLines(width); len(list) > 0 {
		above = list
	}
	a.scroll.width = width
	above = append(above, a.news()...)
	status := 1
	if a.height < 3 {
		above, status = nil, 0
	}
	if a.height >= ruleFrom {
		box = append([]string{a.rule(width, tasks, side)}, box...)
	}
	rest := a.height - len(box) - status
	above = above[:max(0, min(len(above), rest-1))]
	a.scroll.height = max(0, rest-len(above))
	lines := a.scroll.window(a.visible())
	if a.blank() {
		copy(lines[min(len(lines), a.scroll.used):], a.welcome(width))
	}
	top := len(lines) + len(above)
	if a.height >= ruleFrom {
		top++
	}
	lines = append(append(lines, above...), box...)
	for i := range lines {
		lines[i] = plain.Cut(lines[i], width, "")
	}
	if side {
		lines = beside(lines, sideLines(tasks, len(lines)), width)
	}
	if status > 0 {
		lines = append(lines, a.statusLine())
	}
	v.Content = plain.Painted(strings.Join(lines[:min(len(lines), a.height)], "\n")) // whatever was forgotten before
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
		out[i] = plain.Pad(l, width) + styleDim.Render("│")
		if i < len(column) {
			out[i] += column[i]
		}
	}
	return out
}

// blank reports whether nothing was said yet.
func (a *App) blank() bool {
	for _, it := range a.visible() {
		if it.Kind != Note {
			return false
		}
	}
	return a.hidden == 0 && a.t.First <= 1
}

// welcome stands where the conversation will be.
func (a *App) welcome(width int) []string {
	if !a.ready {
		return []string{styleDim.Render("reading…")}
	}
	out := []string{""}
	for _, row := range [][2]string{{"model", a.info.Model}, {"in", a.info.Dir}, {"run", string(a.info.Run)}} {
		if row[1] != "" {
			out = append(out, plain.Cut("  "+styleDim.Render(plain.Pad(row[0], 7))+plain.Text(row[1]), width, "…"))
		}
	}
	return append(append(out, ""), hang("  ", 2, "Say what you want. /help lists commands and keys, $ shows what it costs.", width, styleDim.Render)...)
}

// rule is the line above the box; it holds the task where there is no side bar.
func (a *App) rule(width int, tasks TaskList, side bool) string {
	if len(tasks) == 0 || side {
		return styleDim.Render(strings.Repeat("─", width))
	}
	done := fmt.Sprintf(" ✓ %d completed ─", tasks.Done())
	now := ""
	if c := tasks.Current(); c != nil {
		now = " " + taskMarks[c.Status] + " " + cmp.Or(c.Goal, c.ID)
		if c.State != "" {
			now += styleDim.Render(": " + plain.Line(c.State, 200))
		}
		now = plain.Cut(now, max(0, width-plain.Width(done)-4), "…") + " "
	}
	gap := max(0, width-1-plain.Width(now)-plain.Width(done))
	return styleDim.Render("─") + now + styleDim.Render(strings.Repeat("─", gap)) + styleWaits.Render(done)
}

// choiceLines are the fields that the open question asks for, and its answers, numbered.
func (a *App) choiceLines(width int) []string {
	w, _ := a.waiting()
	var out []string
	how := "  ↑↓ or a number, then Enter:"
	if len(w.Fields) > 0 {
		text := "fill in name=value, each on a line:"
		for _, f := range w.Fields {
			text += "  " + fieldHint(f)
		}
		out = hang("  ", 2, text, width, styleDim.Render)
		how = "  pick one: ↑↓ first, or a number on the first line; then the fields, Enter:"
	}
	if len(w.Choices) == 0 {
		return out
	}
	if w.Kind == protocol.WaitApproval {
		return append(out, a.approvalLines(w, width)...)
	}
	out = append(out, styleDim.Render(plain.Cut(how, width, "…")))
	for i, c := range w.Choices {
		out = append(out, a.choiceLine(i, fmt.Sprint(i+1), c, width)...)
	}
	return out
}

// choiceLine is a choice behind its number or key, whole.
func (a *App) choiceLine(i int, key string, c protocol.Choice, width int) []string {
	mark, style := "  ", plainStyle
	switch {
	case a.pick == i+1:
		mark, style = "> ", styleChosen.Render
	case c.Primary:
		style = styleQuestion.Render
	}
	head := mark + key + "  "
	lines := plain.Wrap(plain.Line(plain.Text(c.Label), 200), max(1, width-len(head)))
	for i := range lines {
		lines[i] = style(plain.Cut(head+lines[i], width, "…"))
		head = strings.Repeat(" ", len(head))
	}
	return lines
}
