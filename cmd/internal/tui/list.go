package tui

import (
	"slices"
	"strings"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
)

// list is a choice among things with ids. The choice stays with its id when others come.
type list struct {
	id  string
	all []string
	top int
}

// keep takes the newest ids; where the chosen one is gone the first is chosen.
func (l *list) keep(all []string) {
	l.all = all
	if !slices.Contains(all, l.id) {
		l.id = ""
		if len(all) > 0 {
			l.id = all[0]
		}
	}
}

// move chooses another, by so many places. It reports whether that is another one.
func (l *list) move(by int) bool {
	if len(l.all) == 0 {
		return false
	}
	to := l.all[max(0, min(slices.Index(l.all, l.id)+by, len(l.all)-1))]
	changed := to != l.id
	l.id = to
	return changed
}

// window is which of the ids are visible in so many rows.
func (l *list) window(rows int) (from, to int) {
	at := slices.Index(l.all, l.id)
	rows = max(0, rows)
	l.top = max(0, min(l.top, at, len(l.all)-rows))
	if at >= l.top+rows {
		l.top = at - rows + 1
	}
	return max(0, l.top), min(len(l.all), max(0, l.top)+rows)
}

// shownRuns are those that the filter lets through.
func (a *App) shownRuns() []api.Row {
	if a.filter == "" {
		return a.runs
	}
	var out []api.Row
	for _, r := range a.runs {
		if strings.Contains(strings.ToLower(plain.Text(string(r.ID)+" "+r.Workflow+" "+r.Title+" "+render.RowState(r).Word())), strings.ToLower(a.filter)) {
			out = append(out, r)
		}
	}
	return out
}
