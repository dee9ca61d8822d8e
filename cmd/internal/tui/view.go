package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

var (
	dim     = lipgloss.NewStyle().Faint(true)
	bold    = lipgloss.NewStyle().Bold(true)
	chosen  = lipgloss.NewStyle().Reverse(true)
	good    = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
	bad     = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
	busy    = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	heading = lipgloss.NewStyle().Foreground(lipgloss.Color("6")).Bold(true)
)

// marks are the signs of where a run or a step stands.
var marks = map[string]string{"ok": "✓", "done": "✓", "failed": "✗", "cancelled": "✗", "running": "▶", "waiting": "⏸", "suspended": "⏸",
	"parked": "⏸", "retrying": "↻", "skipped": "–"}

func mark(status string) string {
	m := marks[status]
	switch m {
	case "✓", "–":
		return good.Render(m)
	case "✗":
		return bad.Render(m)
	case "":
		return "?"
	}
	return busy.Render(m)
}

// View draws the screen.
func (a *App) View() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.WindowTitle = true, "wf"
	if a.width < 1 || a.height < 1 {
		return v
	}
	var lines []string
	rows := max(0, a.height-1)
	switch {
	case a.help:
		lines = append([]string{bold.Render("Keys"), ""}, strings.Split(helpText, "\n")...)
	case a.width < 60: // one pane at a time
		lines = [...]func(int, int) []string{a.runLines, a.stepLines, a.pageLines}[a.focus](a.width, rows)
	default:
		left := min(44, a.width*2/5)
		upper := rows / 2
		side := append(fill(a.runLines(left, upper), left, upper), a.stepLines(left, rows-upper)...)
		page := a.pageLines(a.width-left-1, rows)
		for i, l := range fill(side, left, rows) {
			if i < len(page) {
				l += dim.Render("│") + page[i]
			}
			lines = append(lines, l)
		}
	}
	lines = fill(lines, 0, rows)
	lines = append(lines, a.bottom())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], a.width, "")
	}
	v.Content = strings.Join(lines[max(0, len(lines)-a.height):], "\n")
	return v
}

// fill makes exactly n lines, of exactly width cells where width is not 0.
func fill(lines []string, width, n int) []string {
	out := make([]string, n)
	copy(out, lines)
	for i := range out {
		if width > 0 {
			out[i] = ansi.Truncate(out[i], width, "")
			out[i] += strings.Repeat(" ", width-ansi.StringWidth(out[i]))
		}
	}
	return out
}

func (a *App) title(p pane, text string) string {
	text = fmt.Sprintf("%d %s", p+1, text)
	if a.focus == p {
		return heading.Render(text)
	}
	return dim.Render(text)
}

func (a *App) runLines(width, rows int) []string {
	runs := a.shownRuns()
	head := fmt.Sprintf("Runs (%d)", len(runs))
	if a.filter != "" {
		head = fmt.Sprintf("Runs with %q (%d of %d)", a.filter, len(runs), len(a.runs))
	}
	out := []string{a.title(runsPane, head)}
	from, to := a.run.window(rows - 1)
	for _, r := range runs[min(from, len(runs)):min(to, len(runs))] {
		name := plain.Line(plain.Text(r.Title), 60)
		if name == "" {
			name = r.Workflow
		}
		out = append(out, a.row(runsPane, string(r.ID) == a.run.id, fmt.Sprintf("%s %-10s %s", mark(string(r.Status)), r.ID, name), width))
	}
	if len(runs) == 0 {
		out = append(out, dim.Render("  none; wf demo makes one"))
	}
	return out
}

// row shows the chosen one of a list; brightly where the keys go.
func (a *App) row(p pane, is bool, text string, width int) string {
	text = ansi.Truncate(" "+text, width, "…")
	if !is {
		return text
	}
	text = ansi.Strip(text)
	text += strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if a.focus == p {
		return chosen.Render(text)
	}
	return bold.Render(text)
}

func (a *App) stepLines(width, rows int) []string {
	head := "Steps"
	if a.view.ID != "" {
		head = fmt.Sprintf("Steps of %s: %s", a.view.ID, a.view.Status)
	}
	out := []string{a.title(stepsPane, head)}
	from, to := a.step.window(rows - 1)
	steps := a.view.Steps
	for _, s := range steps[min(from, len(steps)):min(to, len(steps))] {
		text := fmt.Sprintf("%s %s", mark(s.Status), s.ID)
		if s.Resumes {
			text += " ↩"
		}
		if s.CID != "" {
			text += " " + dim.Render(shortCID(s.CID))
		}
		if s.Prompt != "" {
			text += "  " + dim.Render(plain.Line(plain.Text(s.Prompt), 60))
		}
		out = append(out, a.row(stepsPane, s.ID == a.step.id, text, width))
	}
	return out
}

// shortCID is the 8 characters behind the part that all CIDs share.
func shortCID(cid string) string {
	if len(cid) < 15 {
		return cid
	}
	return cid[7:15]
}

func (a *App) pageLines(width, rows int) []string {
	var tabs []string
	for p := range pages {
		name := p.String()
		if p == a.page {
			name = bold.Underline(true).Render(name)
		} else {
			name = dim.Render(name)
		}
		tabs = append(tabs, name)
	}
	out := []string{a.title(mainPane, a.step.id) + "  " + strings.Join(tabs, " ")}
	if len(a.view.Waiting) > 0 {
		q := a.view.Waiting[0]
		for _, l := range plain.Wrap("⏸ "+q.Step+": "+plain.Text(q.Text), width) {
			out = append(out, busy.Render(l))
		}
		for i, c := range q.Choices {
			out = append(out, fmt.Sprintf("  %d  %s", i+1, plain.Text(c.Label)))
		}
		out = append(out, dim.Render("  a answers"), "")
	}
	all := plain.Wrap(a.text, width)
	room := max(1, rows-len(out))
	a.top = max(0, min(a.top, len(all)-room))
	for _, l := range all[a.top:min(len(all), a.top+room)] {
		out = append(out, colored(l, a.page))
	}
	return out
}

// colored marks the lines of a diff.
func colored(l string, p Page) string {
	if p != Diff {
		return l
	}
	switch {
	case strings.HasPrefix(l, "+"):
		return good.Render(l)
	case strings.HasPrefix(l, "-"):
		return bad.Render(l)
	case strings.HasPrefix(l, "@@"):
		return heading.Render(l)
	}
	return l
}

func (a *App) bottom() string {
	switch {
	case a.typing == filtering:
		return bold.Render("/") + string(a.line) + "▏"
	case a.typing == answering:
		return bold.Render("answer: ") + plain.Text(string(a.line)) + "▏"
	case a.said != "":
		return bad.Render(a.said)
	case a.view.Status == protocol.Suspended && a.view.Reason != "":
		return busy.Render(plain.Line(plain.Text(a.view.Reason), 300))
	}
	return dim.Render("? keys  q leave")
}
