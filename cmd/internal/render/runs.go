package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// ShowRuns writes a list of runs, of which some were picked or all are shown.
func (p *Printer) ShowRuns(page *api.Page, picked bool) error {
	rows := page.Items
	if s := page.Searched; s != nil && s.Behind > 0 {
		p.Progress("%s", behindSearch(*s))
	}
	switch {
	case p.AsJSON():
		if rows == nil {
			rows = []api.Row{}
		}
		all := map[string]any{"schema": "wf.runs/v1", "items": rows}
		if page.Searched != nil {
			all["searched"] = page.Searched
		}
		return AnswerAll(p, all, rows)
	case len(rows) == 0 && picked:
		p.Progress("no run matches these filters; wf ls without flags lists all")
		return nil
	case len(rows) == 0:
		p.Progress("no runs; wf run FILE starts one")
		return nil
	}
	err := p.RunTable(rows)
	if page.Next != nil {
		p.Progress("there are more than these %d: -n 0 lists all", len(rows))
	}
	return err
}

// RunTable writes runs for people, one on each line.
func (p *Printer) RunTable(rows []api.Row) error {
	lines := p.head("RUN", "WORKFLOW", "STATUS", "STEPS", "AGE", "WALL", "TIME", "TOKENS(cached)", "HEAD", "")
	for _, r := range rows {
		lines = append(lines, []string{
			p.Out.Bold(string(r.ID)), Visible(r.Workflow), RowState(r).Sign(p.Out.Paint) + " " + RowState(r).Word(), fmt.Sprint(r.Steps),
			Age(r.Updated), Span(Wall(r.Status, r.Started, r.Updated, time.Now())), Span(time.Duration(r.ActiveMS) * time.Millisecond), shortUsage(r.Usage), ShortCID(r.Head), p.Commands(rowNote(r)),
		})
	}
	var table strings.Builder
	if err := Table(&table, lines); err != nil {
		return err
	}
	out := strings.SplitAfter(table.String(), "\n")
	for i, r := range rows {
		for _, h := range r.Hits {
			out[i+1] += p.hit(h)
		}
	}
	_, err := io.WriteString(p.Out, strings.Join(out, ""))
	return err
}

// hit is the line below a run with a place where words of a search occur.
func (p *Printer) hit(h api.Hit) string {
	where := strings.TrimSpace(OneLine(h.Step, 60) + " " + OneLine(h.Kind, 20))
	if h.Run != "" {
		where = OneLine(string(h.Run), 20) + ":" + where
	}
	return "    " + p.Out.Dim(where+":") + " " + OneLine(h.Text, 200) + "\n"
}

// behindSearch says which runs are not searched whole.
func behindSearch(s api.Searched) string {
	left := fmt.Sprintf("still to be indexed: %d of %s", s.Behind, protocol.Plural(s.Runs+s.Behind, "run"))
	if s.UpTo == "" {
		return left
	}
	return "searched up to " + s.UpTo + "; " + left
}

// ShowDeletions lists runs that were deleted.
func (p *Printer) ShowDeletions(d *api.Deletions) error {
	if len(d.Items) == 0 {
		p.Progress("no run was deleted")
		return nil
	}
	lines := p.head("RUN", "DELETED", "BY", "WHY")
	for _, x := range d.Items {
		lines = append(lines, []string{p.Out.Bold(Visible(string(x.Run))), Age(x.At), OneLine(Visible(x.By), 60), OneLine(Visible(x.Why), 100)})
	}
	return Table(p.Out, lines)
}

// RowState is the state of a run in a list.
func RowState(r api.Row) State { return State{r.Status, r.Idle, r.Closing, r.Lacks} }

// rowNote is what a run waits for, why it stopped, or what goes on with it.
func rowNote(r api.Row) string {
	switch {
	case r.Foreign && !r.Status.Final() && r.Parent == nil:
		return "from elsewhere: " + wf("store", "adopt", string(r.ID))
	case r.Foreign:
		return "from elsewhere"
	case r.Idle == api.Unattended && r.Parent == nil:
		return "queued; no process waits for its turn: " + wf("resume", string(r.ID)) + " or " + wf("serve")
	case r.Queue != nil && r.Idle == "":
		return Queued(r.Queue)
	case len(r.Lacks) > 0:
		return "waits for " + Lacked(r.Lacks)
	case r.Idle != "" && r.Parent != nil && r.Closing == "":
		return "a part of " + *r.Parent
	case r.Idle != "":
		return wf("resume", string(r.ID)) + " goes on"
	}
	if r.Closing != "" {
		return "ends as " + string(r.Closing) + Because(OneLine(r.Reason, 50))
	}
	if len(r.Waiting) == 0 {
		return OneLine(r.Reason, 60)
	}
	w := r.Waiting[0]
	if w.Question == "" {
		return "waits for a " + string(w.Kind)
	}
	text := `asks: "` + question(w.Question, 50) + `"`
	if asking := Asking(w); asking != "" {
		text += ", " + asking
	}
	return text
}

// Lacked says which worker a run waits for, by what this process lacks.
func Lacked(lacks []string) string {
	var has []string
	for _, x := range lacks {
		if machine, ok := strings.CutPrefix(x, "place:"); ok {
			x = "the files of machine " + machine
		}
		has = append(has, OneLine(x, 60))
	}
	return "a worker that has " + strings.Join(has, " and ")
}

// shortUsage is the tokens of a run: all of them, and which part of the prompts was cached.
func shortUsage(u api.RowUsage) string {
	if u.Calls == 0 {
		return "–"
	}
	cached := int64(0)
	if u.Input > 0 {
		cached = 100 * u.Cached / u.Input
	}
	return fmt.Sprintf("%s (%d%%)", thousands(u.Input+u.Output), cached)
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

// Age is how long ago a time was, as RFC 3339: 5s, 12m, 3h, 9d.
func Age(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "?"
	}
	return Ago(time.Since(t))
}

// Ago is a time that has passed, in its greatest unit.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// head is the first row of a table.
func (p *Printer) head(names ...string) [][]string {
	for i, name := range names {
		names[i] = p.Out.Dim(name)
	}
	return [][]string{names}
}

// Table writes rows with columns of equal width; cells may hold colours and wide characters. The last cell of a row
// may be as long as it is.
func Table(w io.Writer, rows [][]string) error { return table(w, rows, 0) }

// notes is Table for rows that end with words and not with commands: on a terminal a last cell goes on below itself, where
// no word of it is too long for that.
func notes(s *Screen, rows [][]string) error {
	width := 0
	if s.TTY {
		width, _ = s.Size()
	}
	return table(s, rows, width)
}

func table(w io.Writer, rows [][]string, width int) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:max(0, len(row)-1)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		at := 0
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(below(cell, at, width))
				break
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
			at += widths[i] + 2
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// below breaks a cell that begins at a column of a terminal, so that it goes on below itself.
func below(cell string, at, width int) string {
	room := width - 1 - at
	if width == 0 || plain.Width(cell) <= room || strings.Contains(cell, "\n") ||
		slices.ContainsFunc(strings.Fields(cell), func(word string) bool { return plain.Width(word) > room }) {
		return cell
	}
	return strings.Join(plain.Wrap(cell, room), "\n"+strings.Repeat(" ", at))
}
