package chat

import (
	"fmt"
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
	shown  []int // rows that the filter leaves
	at     int   // in shown
	top    int
	room   int
	chosen string
}

func newPicker(l List) *picker {
	p := &picker{List: l}
	p.find("")
	p.at = max(0, min(l.At, len(p.shown)-1))
	return p
}

// find leaves the rows that hold all words of a filter, in any case.
func (p *picker) find(filter string) {
	p.filter, p.shown, p.at = filter, p.shown[:0], 0
	words := strings.Fields(strings.ToLower(filter))
rows:
	for i, r := range p.Rows {
		text := strings.ToLower(r.Value + " " + r.Text)
		for _, w := range words {
			if !strings.Contains(text, w) {
				continue rows
			}
		}
		p.shown = append(p.shown, i)
	}
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
			p.chosen = p.Rows[p.shown[p.at]].Value
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
		r := p.Rows[p.shown[i]]
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
	switch own := p.own(); {
	case own != "":
		lines = []string{"Enter takes " + plain.Text(own) + " as it is written"}
	case len(p.Rows) == 0:
		lines = []string{styleDim.Render("the list is empty")}
	case len(p.shown) == 0:
		lines = []string{styleDim.Render("no row matches; Backspace widens the filter")}
	}
	title := styleQuestion.Render(p.Title)
	if p.filter != "" {
		title += fmt.Sprintf(" / %s (%d of %d)", plain.Text(p.filter), len(p.shown), len(p.Rows))
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
