package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
)

// A List is something to choose from.
type List struct {
	Title string
	Hint  string // what Enter does
	Rows  []Row
	At    int    // the row that is chosen at first
	Do    Action // what is done with the row that is chosen: its Value is the argument
	Own   bool   // what is no row can be written instead
	Next  string // from where Find goes on behind Rows, "" is that they are all
	// Find reads the rows behind a place of the list, or, with a filter, the first of those that it finds; nil where Rows are
	// all.
	Find func(ctx context.Context, filter, from string) (Found, error)
}

// Found are rows of a List, in its order.
type Found struct {
	Rows []Row
	Next string // as of a List
	Note string // what is lacking, "" is nothing
}

// A Row of a List.
type Row struct {
	Value   string
	Text    string
	Current bool // it is what holds now
}

// picker is a List on the screen: arrows choose, typing filters.
type picker struct {
	List
	filter string
	shown  []Row // that the filter leaves
	at     int   // in shown
	top    int
	room   int
	chosen string

	asking bool   // for rows
	asked  string // the filter that was asked for last
	found  Found  // what that found
	failed error  // why rows are lacking
}

func newPicker(l List) *picker {
	p := &picker{List: l}
	p.find("")
	p.at = max(0, min(l.At, len(p.shown)-1))
	return p
}

// find leaves the rows that hold all words of a filter, in any case, and those that it found where the list is: behind the rows
// that were read, which are the first of the list.
func (p *picker) find(filter string) {
	p.filter, p.shown, p.at = filter, nil, 0
	var found []Row
	if p.asked == filter {
		found = p.found.Rows
	}
	for _, r := range p.Rows {
		if holds(r, filter) || has(found, r) {
			p.shown = append(p.shown, r)
		}
	}
	for _, r := range found {
		if !has(p.Rows, r) {
			p.shown = append(p.shown, r)
		}
	}
}

func holds(r Row, filter string) bool {
	text := strings.ToLower(r.Value + " " + r.Text)
	for w := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func has(rows []Row, r Row) bool {
	return slices.ContainsFunc(rows, func(x Row) bool { return x.Value == r.Value })
}

// gotRows are rows of a list that were asked for.
type gotRows struct {
	of     *picker
	filter string
	found  Found
	err    error
}

// seek asks for the rows that the list on the screen lacks: those that its filter finds, and those behind the last one before the
// person comes there. There is one question at a time.
func (a *App) seek() tea.Cmd {
	p, ok := a.panel.(*picker)
	if !ok || p.Find == nil || p.asking {
		return nil
	}
	from := ""
	switch {
	case p.filter != "" && p.filter != p.asked:
	case p.filter == "" && p.Next != "" && p.failed == nil && p.at+2*max(p.room, 1) >= len(p.Rows):
		from = p.Next
	default:
		return nil
	}
	p.asking, p.failed = true, nil
	filter, find, ctx := p.filter, p.Find, a.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		found, err := find(ctx, filter, from)
		return gotRows{p, filter, found, err}
	}
}

// gotRows takes in what was asked for; the row that is chosen stays so.
func (m gotRows) take() {
	p := m.of
	p.asking, p.failed = false, m.err
	switch {
	case m.filter != "":
		p.asked, p.found = m.filter, m.found
	case m.err == nil:
		for _, r := range m.found.Rows { // one that moved meanwhile is there already
			if !has(p.Rows, r) {
				p.Rows = append(p.Rows, r)
			}
		}
		p.Next = m.found.Next
	}
	chosen := ""
	if p.at < len(p.shown) && p.at > 0 {
		chosen = p.shown[p.at].Value
	}
	p.find(p.filter)
	p.at = max(0, slices.IndexFunc(p.shown, func(r Row) bool { return r.Value == chosen }))
}

// own is what was written instead of a row.
func (p *picker) own() string {
	if !p.Own || len(p.shown) > 0 {
		return ""
	}
	return strings.TrimSpace(p.filter)
}

func (p *picker) key(name string) (closed bool) {
	switch name {
	case "esc", "ctrl+c":
		return true
	case "enter":
		if p.at < len(p.shown) {
			p.chosen = p.shown[p.at].Value
		} else {
			p.chosen = p.own()
		}
		return p.chosen != ""
	case "up", "ctrl+p":
		p.at--
	case "down", "ctrl+n":
		p.at++
	case "pgup":
		p.at -= max(1, p.room-1)
	case "pgdown":
		p.at += max(1, p.room-1)
	case "home":
		p.at = 0
	case "end":
		p.at = len(p.shown) - 1
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(p.filter)
		p.find(p.filter[:len(p.filter)-n])
	case "ctrl+u":
		p.find("")
	case "space":
		p.find(p.filter + " ")
	default:
		if utf8.RuneCountInString(name) == 1 || name != "" && name[0] >= utf8.RuneSelf { // a letter, or what an input method sends
			p.find(plain.Line(plain.Text(p.filter+name), 200))
		}
	}
	p.at = max(0, min(p.at, len(p.shown)-1))
	return false
}

func (p *picker) draw(width, height int) []string {
	w, h := frame.Inside(width, height)
	p.room = h
	p.top = max(0, min(p.top, p.at, len(p.shown)-h))
	if p.at >= p.top+h {
		p.top = p.at - h + 1
	}
	var lines []string
	for i := p.top; i < min(len(p.shown), p.top+h); i++ {
		r := p.shown[i]
		mark := "  "
		if r.Current {
			mark = "● "
		}
		text := plain.Pad(plain.Cut(mark+strings.ReplaceAll(plain.Text(r.Text), "\n", " "), w, "…"), w)
		if i == p.at {
			text = styleChosen.Render(text)
		}
		lines = append(lines, text)
	}
	hint := "↑↓ " + p.Hint + " · Esc closes · type to filter"
	looks := p.asking || p.Find != nil && p.filter != "" && p.filter != p.asked
	switch own := p.own(); {
	case own != "":
		lines = []string{"Enter takes " + plain.Text(own) + " as it is written"}
	case looks && len(p.shown) == 0:
		lines = []string{styleDim.Render("looking…")}
	case len(p.Rows) == 0:
		lines = []string{styleDim.Render("the list is empty")}
	case len(p.shown) == 0:
		lines = []string{styleDim.Render("no row matches; Backspace widens the filter")}
	}
	title := styleQuestion.Render(p.Title)
	switch {
	case p.filter != "" && p.Find != nil:
		title += fmt.Sprintf(" / %s (%d)", plain.Text(p.filter), len(p.shown))
	case p.filter != "":
		title += fmt.Sprintf(" / %s (%d of %d)", plain.Text(p.filter), len(p.shown), len(p.Rows))
	case p.Next != "":
		title += fmt.Sprintf(" (%d, and more below)", len(p.Rows))
	case p.Find != nil:
		title += fmt.Sprintf(" (%d)", len(p.Rows))
	}
	switch {
	case p.failed != nil:
		title += styleFailed.Render(" · " + plain.Line(plain.Text(p.failed.Error()), 200))
	case looks:
		title += styleDim.Render(" · looking…")
	case p.filter != "" && p.filter == p.asked && p.found.Note != "":
		title += styleDim.Render(" · " + p.found.Note)
	}
	f := frame.Frame{Title: title, Hint: styleDim.Render(hint), Style: styleDim}
	return f.Draw(lines, width, height)
}

// chose does what was chosen from a list.
func (a *App) chose(p *picker) tea.Cmd {
	switch {
	case p.chosen == "":
		return nil
	case p.Do == Rewind:
		return a.goBack(Rewind, p.chosen)
	}
	return a.perform(p.Do, p.chosen)
}
