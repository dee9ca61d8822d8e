package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"wf/api"
	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
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
var marks = map[string]string{"ok": "✓", "done": "✓", "failed": "✗", "cancelled": "✗", "running": "▶", "closing": "▶", "queued": "○", "waiting": "⏸", "suspended": "!",
	"interrupted": "!", "not started": "○", "answered": "○", "parked": "⏸", "retrying": "↻", "red": "!", "to come": "○", "skipped": "–"}

func mark(status string) string {
	m := marks[status]
	if m == "" && (strings.HasPrefix(status, "exit ") || status == "cut off" || status == "held") {
		m = "!"
	}
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

// narrow is the width below which one pane is shown at a time.
const narrow = 60

// View draws the screen.
func (a *App) View() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.WindowTitle = true, "wf"
	if a.width < 1 || a.height < 1 {
		return v
	}
	rows := a.height - 1
	var lines []string
	switch {
	case a.over != nil:
		lines = a.over.draw(a.width, rows)
	case a.width < narrow:
		lines = [...]func(int, int) []string{a.runPane, a.stepPane, a.pagePane}[a.focus](a.width, rows)
	default:
		left := max(min(46, a.width*2/5), a.width*3/10)
		upper := rows / 2
		side := append(a.runPane(left, upper), a.stepPane(left, rows-upper)...)
		page := a.pagePane(a.width-left, rows)
		for i := range rows {
			lines = append(lines, side[i]+page[i])
		}
	}
	lines = append(lines, plain.Cut(a.bottom(), a.width, "…"))
	v.Content = plain.Painted(strings.Join(lines[max(0, len(lines)-a.height):], "\n")) // whatever was forgotten before
	return v
}

// pane draws a frame; that of the pane the keys go to is bright.
func (a *App) pane(p pane, title, hint string, lines []string, width, rows int) []string {
	f := frame.Frame{Title: fmt.Sprintf("%d %s", p+1, title), Hint: dim.Render(hint), Style: dim}
	if a.focus == p {
		f.Style = heading.UnsetBold()
		f.Title = heading.Render(f.Title)
	}
	if hint == "" {
		f.Hint = ""
	}
	return f.Draw(lines, width, rows)
}

// place is the place in a list: 3 of 20, with + where more of it was not read.
func place(l *list, more bool) string {
	if len(l.all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d%s", l.place()+1, len(l.all), plus(more))
}

func plus(more bool) string {
	if more {
		return "+"
	}
	return ""
}

func (a *App) runPane(width, rows int) []string {
	runs, more := a.runs.shown, plus(a.runs.next != "")
	title := fmt.Sprintf("Runs (%d%s)", len(runs), more)
	if a.runs.filter != "" {
		title = fmt.Sprintf("Runs with %q (%d of %d%s)", a.runs.filter, len(runs), len(a.runs.all), more)
	}
	w, h := frame.Inside(width, rows)
	from, to := a.run.window(h)
	var out []string
	for _, r := range runs[min(from, len(runs)):min(to, len(runs))] {
		name := plain.Line(plain.Text(r.Title), 60)
		if name == "" {
			name = r.Workflow
		}
		text := fmt.Sprintf("%s %-10s %s", mark(render.RowState(r).Word()), r.ID, name)
		if age := age(r.Updated, a.runs.now); age != "" {
			text = plain.Pad(plain.Cut(text, w-len(age)-1, "…"), w-len(age)) + dim.Render(age)
		}
		out = append(out, a.row(runsPane, string(r.ID) == a.run.id, text, w))
	}
	switch {
	case len(runs) == 0 && a.runs.filter != "":
		out = append(out, dim.Render("none; Esc shows all"))
	case len(runs) == 0 && a.runs.read:
		out = append(out, dim.Render("none yet; wf demo makes one"))
	}
	return a.pane(runsPane, title, place(&a.run, a.runs.next != ""), out, width, rows)
}

// age is how long ago something was, in its greatest unit.
func age(updated string, now time.Time) string {
	at, err := time.Parse(time.RFC3339Nano, updated)
	if err != nil || now.IsZero() {
		return ""
	}
	if d := now.Sub(at); d >= 5*time.Second {
		return render.Ago(d)
	}
	return "now"
}

// row shows the chosen one of a list; brightly where the keys go.
func (a *App) row(p pane, is bool, text string, width int) string {
	text = plain.Cut(text, width, "…")
	if !is {
		return text
	}
	text = plain.Pad(ansi.Strip(text), width)
	if a.focus == p {
		return chosen.Render(text)
	}
	return bold.Render(text)
}

func (a *App) stepPane(width, rows int) []string {
	title := "Steps"
	if a.view.ID != "" {
		state := render.StateOf(a.view).Word()
		if title = fmt.Sprintf("Steps of %s · %s", plain.Text(a.view.Workflow), state); plain.Width(title) > width-8 {
			title = "Steps · " + state
		}
		if took := " · " + render.Took(a.view); a.view.Started != "" && plain.Width(title+took) <= width-8 {
			title += took
		}
	}
	w, h := frame.Inside(width, rows)
	from, to := a.step.window(h)
	visible, idWidth := a.rows[min(from, len(a.rows)):min(to, len(a.rows))], 0
	for _, r := range visible {
		if r.step != nil {
			idWidth = max(idWidth, plain.Width(a.label(r)))
		}
	}
	var out []string
	for _, r := range visible {
		out = append(out, a.row(stepsPane, r.id == a.step.id, a.stepRow(r, min(idWidth, w/2), w), w))
	}
	hint := place(&a.step, false)
	if a.missing() > 0 && a.view.Earlier > 0 {
		hint = "reading …"
	} else if hint != "" && a.view.Earlier > 0 { // places are counted from the first one
		before := a.view.Count() - len(a.view.Steps)
		hint = fmt.Sprintf("%d of %d", before+a.step.place()+1, before+len(a.rows))
	}
	return a.pane(stepsPane, title, hint, out, width, rows)
}

// label is how a row is named.
func (a *App) label(r row) string {
	if r.fan != nil && r.step != nil {
		return " " + r.id
	}
	return r.id
}

// stepRow is a line of the pane of steps.
func (a *App) stepRow(r row, idWidth, width int) string {
	switch {
	case r.isFan():
		sign := "▸"
		if r.fan.open {
			sign = "▾"
		}
		name := fmt.Sprintf("%s %s %s ", mark(r.fan.Worst()), r.id, dim.Render(sign))
		if plain.Width(name)+plain.Width(r.fan.String()) > width {
			return name + r.fan.Short()
		}
		return name + r.fan.String()
	case r.step == nil:
		return dim.Render("   … more of them: Space")
	}
	s, again := r.step, " "
	if r.fan != nil && r.fan.Odd(r.id) {
		return fmt.Sprintf("%s %s  %s  %s", mark(render.StepState(s)), plain.Pad(a.label(r), idWidth), render.StepState(s), dim.Render(render.Note(s)))
	}
	if s.Resumes != nil {
		again = "↩"
	}
	text := fmt.Sprintf("%s %s %s %s", mark(render.StepState(s)), plain.Pad(a.label(r), idWidth), again, dim.Render(plain.Pad(render.ShortOf(s.CID), 8)))
	if how := render.StepState(s); how != s.Status {
		text += "  " + busy.Render(how)
	}
	if s.EdgePrompt != "" {
		text += "  " + dim.Render(plain.Line(plain.Text(s.EdgePrompt), 60))
	}
	return text
}

// tabs are the names of the pages; where there is no room, that of the one that is shown.
func (a *App) tabs(width int) string {
	var all []string
	for p := range pages {
		name := p.String()
		if p == a.page {
			name = bold.Underline(true).Render(name)
		} else {
			name = dim.Render(name)
		}
		all = append(all, name)
	}
	if line := strings.Join(all, " "); plain.Width(line) <= width {
		return line
	}
	return all[a.page] + dim.Render(fmt.Sprintf(" %d of %d", a.page+1, pages))
}

func (a *App) pagePane(width, rows int) []string {
	step := a.step.id
	if step != "" {
		step += "  "
	}
	w, h := frame.Inside(width, rows)
	if a.form != nil {
		return a.pane(mainPane, step+"answer", "", a.formLines(w, h), width, rows)
	}
	out, all := a.standing(w), a.pageLines(w)
	if len(out) > h/2 { // what is asked is read by scrolling, to its end
		out, all = nil, append(out, all...)
	}
	room := max(1, h-len(out))
	a.room, a.top = room, max(0, min(a.top, len(all)-room))
	out = append(out, all[a.top:min(len(all), a.top+room)]...)
	hint := ""
	if len(all) > room {
		hint = fmt.Sprintf("%d–%d of %d", a.top+1, min(len(all), a.top+room), len(all))
	}
	if a.before > 0 {
		hint = strings.TrimSpace("< earlier  " + hint)
	}
	if len(a.parts) > 0 {
		hint += "  > later"
	}
	return a.pane(mainPane, step+a.tabs(width-plain.Width(step)-8), hint, out, width, rows)
}

// standing says above the page what the run waits for, or why it does not go on.
func (a *App) standing(width int) []string {
	var out []string
	if a.view.Reason != "" {
		for _, l := range plain.Wrap("! "+plain.Line(plain.Text(a.view.Reason), 300), width) {
			out = append(out, bad.Render(l))
		}
		out = append(out, "")
	}
	if why := render.StateOf(a.view).Why(); why != "" {
		for _, l := range plain.Wrap("! "+plain.Line(plain.Text(why+". "+resumeHint(a.view)), 400), width) {
			out = append(out, busy.Render(l))
		}
		out = append(out, "")
	}
	q, ok := a.question()
	if !ok || q.Step != a.step.id {
		return out
	}
	text := plain.Text(q.Question)
	if strings.TrimSpace(text) == "" {
		text = "it is your turn to say something"
	}
	for _, l := range plain.Wrap("⏸ "+text, width) {
		out = append(out, busy.Render(l))
	}
	for i, c := range q.Choices {
		out = append(out, fmt.Sprintf("  %d  %s", i+1, plain.Line(plain.Text(c.Label), 200)))
	}
	how := "a answers"
	if fields := protocol.FormFields(string(q.Form)); len(fields) > 0 {
		how = "a fills in " + strings.Join(ids(fields, func(f protocol.FormField) string { return f.Name }), ", ")
	}
	for _, l := range plain.Wrap("  "+plain.Line(plain.Text(how), 400), width) {
		out = append(out, dim.Render(l))
	}
	return append(out, "")
}

// resumeHint says how a run goes on that no process drives.
func resumeHint(v *api.Run) string {
	if len(v.Lacks) > 0 || v.Info.Parent != nil {
		return render.ResumeCommand(v) + " goes on with it"
	}
	return "R goes on with it"
}

// wrapped are the lines of a page, as long as nothing of what they are made from changes.
type wrapped struct {
	text        string
	page        Page
	width, left int
	lines       []string
}

// pageLines are the lines of the page: those of words are wrapped, those in columns can be moved
// sideways.
func (a *App) pageLines(width int) []string {
	if a.text == "" {
		return nil
	}
	now := wrapped{text: a.text, page: a.page, width: width, left: a.left}
	if x := a.lines; x.lines != nil && x.text == now.text && x.page == now.page && x.width == now.width && x.left == now.left {
		return x.lines
	}
	text := strings.TrimRight(a.text, "\n")
	if a.page.columns() {
		now.lines = strings.Split(text, "\n")
		if a.left > 0 {
			for i, l := range now.lines {
				now.lines[i] = ansi.TruncateLeftWc(l, a.left, "")
			}
		}
	} else {
		now.lines = plain.Wrap(text, width)
	}
	for i, l := range now.lines {
		now.lines[i] = colored(plain.Cut(l, width, "…"), a.page)
	}
	a.lines = now
	return now.lines
}

// colored marks the lines of a diff, and the headings of parts.
func colored(l string, p Page) string {
	switch {
	case strings.HasPrefix(l, "── "), p == Diff && strings.HasPrefix(l, "@@"):
		return heading.Render(l)
	case p == Diff && strings.HasPrefix(l, "+"), p == Verify && strings.HasPrefix(l, "✓"):
		return good.Render(l)
	case p == Diff && strings.HasPrefix(l, "-"), p == Verify && strings.HasPrefix(l, "✗"):
		return bad.Render(l)
	}
	return l
}

// bottom is the line of keys, or what is being written, or what was said.
func (a *App) bottom() string {
	switch {
	case a.filtering:
		return heading.Render(" filter: ") + plain.Line(string(a.line), 500) + "▏" + dim.Render("  Enter keeps, Esc shows all")
	case a.said != "" && a.wrong:
		more := "  ! shows all"
		return " " + bad.Render(plain.Cut(a.said, max(1, a.width-1-plain.Width(more)), "…")) + dim.Render(more)
	case a.said != "":
		return " " + a.said
	}
	out := ""
	for _, k := range a.hints() {
		hint := " " + heading.Render(k[0]) + " " + dim.Render(k[1]) + " "
		if plain.Width(out+hint) > a.width+1 { // the last blank may be missing
			break
		}
		out += hint
	}
	return out
}

// hints are the keys that matter where the focus is.
func (a *App) hints() [][2]string {
	out := [][2]string{{"↑↓", "choose"}, {"Enter", "open"}, {"/", "filter"}}
	switch {
	case a.form != nil:
		return [][2]string{{"Enter", "next"}, {"Esc", "leave open"}}
	case a.focus == stepsPane:
		out = [][2]string{{"↑↓", "choose"}, {"Enter", "open"}, {"[ ]", "pages"}}
		if x := a.chosenRow().fan; x != nil {
			does := "unfold"
			if x.open {
				does = "fold"
			}
			out = append(out, [2]string{"Space", does})
		}
	case a.focus == mainPane:
		out = [][2]string{{"↑↓", "scroll"}, {"[ ]", "pages"}, {"H L", "sideways"}}
	}
	if _, ok := a.question(); ok {
		out = append(out, [2]string{"a", "answer"})
	}
	if a.view.Status == protocol.Suspended || a.view.Idle != "" {
		out = append(out, [2]string{"R", "resume"})
	}
	last := [][2]string{{"?", "keys"}, {"q", "leave"}}
	if a.width < narrow {
		return append(last, out...)
	}
	return append(append(out, [2]string{"Tab", "next pane"}), last...)
}
