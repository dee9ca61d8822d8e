package chat

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
)

// A panel takes the whole screen and all keys until it is closed.
type panel interface {
	// key reports whether the panel is closed by a key.
	key(name string) (closed bool)
	draw(width, height int) []string
}

// dialog is a text in a window of its own.
type dialog struct {
	title string
	text  func(width int) []string
	wide  bool // the text is not wrapped, and can be moved sideways

	top, left int
	rows      int // of the text when it was drawn last
	room      int // for it
}

// newDialog shows a text: wrapped, or as it is.
func newDialog(title, text string, wide bool) *dialog {
	text = strings.TrimRight(plain.Text(text), "\n")
	d := &dialog{title: title, wide: wide}
	d.text = func(width int) []string {
		if wide {
			return strings.Split(text, "\n")
		}
		return plain.Wrap(text, width)
	}
	return d
}

// sideways is how far a wide text moves at a time.
const sideways = 8

func (d *dialog) key(name string) (closed bool) {
	switch name {
	case "esc", "enter", "q", "ctrl+c", "$":
		return true
	case "up", "k", "shift+up":
		d.top--
	case "down", "j", "shift+down":
		d.top++
	case "pgup", "b", "ctrl+u":
		d.top -= max(1, d.room-1)
	case "pgdown", "space", "ctrl+d":
		d.top += max(1, d.room-1)
	case "home", "g":
		d.top, d.left = 0, 0
	case "end", "G":
		d.top = d.rows
	case "left", "h":
		d.left = max(0, d.left-sideways)
	case "right", "l":
		d.left += sideways
	}
	return false
}

func (d *dialog) draw(width, height int) []string {
	w, h := frame.Inside(width, height)
	all := d.text(w)
	longest := 0
	if d.wide {
		for _, l := range all {
			longest = max(longest, plain.Width(l))
		}
	}
	d.rows, d.room = len(all), h
	d.top = max(0, min(d.top, d.rows-h))
	d.left = max(0, min(d.left, longest-w))
	lines := all[d.top:min(len(all), d.top+h)]
	if d.left > 0 {
		moved := make([]string, len(lines))
		for i, l := range lines {
			moved[i] = ansi.TruncateLeftWc(l, d.left, "")
		}
		lines = moved
	}
	hint := "Esc closes"
	if longest > w {
		hint = "←→ sideways · " + hint
	}
	if d.rows > h {
		hint = fmt.Sprintf("%d–%d of %d · ↑↓ scroll · ", d.top+1, d.top+len(lines), d.rows) + hint
	}
	f := frame.Frame{Title: styleQuestion.Render(plain.Line(plain.Text(d.title), 200)), Hint: styleDim.Render(hint), Style: styleDim}
	return f.Draw(lines, width, height)
}
