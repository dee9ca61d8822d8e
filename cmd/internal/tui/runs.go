package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// nearEnd is how close to the end of what is known of a list its next part is read.
const nearEnd = 50

// runs are those that were read, the one that moved last first. Older ones are read when the choice comes near them.
type runs struct {
	all   []api.Row
	next  string // before, for older ones; "" where there are none
	read  bool   // the newest were, once
	now   time.Time
	found map[protocol.RunID]bool // by the words that the filter looks for

	filter string
	shown  []api.Row // that the filter lets through
}

// gotRuns is a part of the list.
type gotRuns struct {
	text, before string
	page         *api.Page
	now          time.Time
	err          error
}

// readRuns reads the newest runs, or the ones that a text is found in.
func (a *App) readRuns(text, before string) tea.Cmd {
	return func() tea.Msg {
		page, err := a.source.Runs(a.ctx, text, before)
		return gotRuns{text, before, page, time.Now(), err}
	}
}

// take puts a part of the list in its place.
func (r *runs) take(m gotRuns) {
	r.now = m.now
	gone := map[protocol.RunID]bool{}
	if m.text == "" && m.before == "" { // what should be in this part and is not was deleted, or has moved
		last := ""
		if n := len(m.page.Items); n > 0 && m.page.Next != nil {
			last = m.page.Items[n-1].Updated
		}
		for _, x := range r.all {
			gone[x.ID] = m.page.Next == nil || x.Updated > last
		}
		if !r.read || m.page.Next == nil {
			r.next = deref(m.page.Next)
		}
		r.read = true
	} else if m.text == "" {
		r.next = deref(m.page.Next)
	}
	for _, x := range m.page.Items {
		gone[x.ID] = true // its old row
		if m.text != "" && m.text == r.filter {
			r.found[x.ID] = true
		}
	}
	r.all = append(slices.DeleteFunc(r.all, func(x api.Row) bool { return gone[x.ID] }), m.page.Items...)
	slices.SortFunc(r.all, func(x, y api.Row) int {
		return cmp.Or(strings.Compare(y.Updated, x.Updated), strings.Compare(string(x.ID), string(y.ID)))
	})
	r.let()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// look sets the filter.
func (r *runs) look(text string) {
	r.filter, r.found = text, map[protocol.RunID]bool{}
	r.let()
}

// let finds the runs that the filter lets through.
func (r *runs) let() {
	if r.filter == "" {
		r.shown = r.all
		return
	}
	wanted := strings.ToLower(r.filter)
	r.shown = nil
	for _, x := range r.all {
		if r.found[x.ID] || strings.Contains(strings.ToLower(plain.Text(string(x.ID)+" "+x.Workflow+" "+x.Title+" "+render.RowState(x).Word())), wanted) {
			r.shown = append(r.shown, x)
		}
	}
}

// gotRuns takes a part of the list in.
func (a *App) gotRuns(m gotRuns) tea.Cmd {
	if m.before != "" {
		a.older = false
	}
	if m.err != nil {
		a.fails(m.err)
		return nil
	}
	a.runs.take(m)
	if cmd := a.refilter(); cmd != nil {
		return cmd
	}
	for _, r := range a.runs.all {
		if r.ID == a.view.ID && render.RowState(r).Word() != render.StateOf(a.view).Word() {
			return a.readView() // its process was killed: that is no event
		}
	}
	return a.readOlder()
}

// readOlder reads the next part of the list, where the choice is near the end of what is known.
func (a *App) readOlder() tea.Cmd {
	if a.older || a.runs.next == "" || a.run.place() < len(a.runs.shown)-nearEnd {
		return nil
	}
	a.older = true
	return a.readRuns("", a.runs.next)
}

// refilter keeps the choice among the runs that are shown.
func (a *App) refilter() tea.Cmd {
	before := a.run.id
	a.run.keep(ids(a.runs.shown, func(r api.Row) string { return string(r.ID) }))
	if a.wanted != "" && slices.Contains(a.run.all, string(a.wanted)) {
		a.run.choose(string(a.wanted))
		a.wanted = ""
	}
	if a.run.id == before {
		return nil
	}
	return a.chose()
}

// row is the row of a run, if it was read.
func (r *runs) row(id string) (api.Row, bool) {
	i := slices.IndexFunc(r.all, func(x api.Row) bool { return string(x.ID) == id })
	if i < 0 {
		return api.Row{}, false
	}
	return r.all[i], true
}
