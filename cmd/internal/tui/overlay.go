package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// overlay is a text over the whole screen until a key closes it: all keys, an error as a whole, or a question that one of
// its keys agrees to.
type overlay struct {
	title string
	lines func(width int) []string
	does  map[string]func() tea.Cmd // by key; every other key but those that scroll closes it
	hint  string

	top, room, rows int
}

// text is an overlay of a text.
func text(title, words string) *overlay {
	words = strings.TrimRight(plain.Text(words), "\n")
	return &overlay{title: title, hint: "any other key closes", lines: func(width int) []string { return plain.Wrap(words, width) }}
}

// key takes a key of an overlay.
func (a *App) overlayKey(name string) tea.Cmd {
	o := a.over
	switch name {
	case "j", "down":
		o.top++
	case "k", "up":
		o.top--
	case "pgdown", "space", "ctrl+d":
		o.top += max(1, o.room-1)
	case "pgup", "ctrl+u":
		o.top -= max(1, o.room-1)
	case "g", "home":
		o.top = 0
	case "G", "end":
		o.top = o.rows
	default:
		a.over = nil
		if do := o.does[name]; do != nil {
			return do()
		}
		if len(o.does) > 0 {
			a.tell("nothing was done")
		}
	}
	return nil
}

// draw draws an overlay.
func (o *overlay) draw(width, rows int) []string {
	w, h := frame.Inside(width, rows)
	all := o.lines(w)
	o.room, o.rows = h, len(all)
	o.top = max(0, min(o.top, len(all)-h))
	hint := o.hint
	if len(all) > h {
		hint = fmt.Sprintf("%d–%d of %d · ↑↓ · %s", o.top+1, min(len(all), o.top+h), len(all), hint)
	}
	return frame.Frame{Title: bold.Render(plain.Line(plain.Text(o.title), 200)), Hint: dim.Render(hint), Style: heading}.
		Draw(all[o.top:min(len(all), o.top+h)], width, rows)
}

// tell says what came of something.
func (a *App) tell(words string) { a.said, a.wrong = plain.Line(plain.Text(words), 1000), false }

// fails says at the bottom what went wrong behind the screen; the key ! shows all of it.
func (a *App) fails(err error) {
	if err == nil {
		return
	}
	a.said, a.wrong, a.whole = plain.Line(plain.Text(err.Error()), 1000), true, whole(err)
}

// refused shows all of what went wrong with something that was asked for.
func (a *App) refused(what string, err error) {
	a.fails(err)
	a.over = text(what, a.whole)
}

// whole is an error with what to do about it.
func whole(err error) string {
	words := err.Error()
	if hint := protocol.HintOf(err); hint != "" {
		words += "\n\nfix: " + hint
	}
	return words
}
