package chat

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/plain"
)

// dialog is a text in a window of its own.
type dialog struct {
	title string
	text  string
	top   int
	rows  int // of the text at the width it was drawn last
}

// key reports whether the dialog is closed by a key.
func (d *dialog) key(name string, height int) (closed bool) {
	by := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": 3 - height, "pgdown": height - 3, "home": -d.rows, "end": d.rows}
	if n, ok := by[name]; ok {
		d.top = max(0, min(d.top+n, d.rows-(height-2)))
		return false
	}
	switch name {
	case "esc", "enter", "q", "ctrl+c", "$":
		return true
	}
	return false
}

func (d *dialog) lines(width, height int) []string {
	all := plain.Wrap(d.text, width)
	d.rows = len(all)
	d.top = max(0, min(d.top, d.rows-(height-2)))
	out := []string{styleStatus.Render(ansi.Truncate(" "+plain.Text(d.title)+" ", width, ""))}
	room := max(0, height-2)
	for i := range room {
		if d.top+i < len(all) {
			out = append(out, ansi.Truncate(all[d.top+i], width, ""))
		} else {
			out = append(out, "")
		}
	}
	foot := "Esc closes"
	if d.rows > room {
		foot = fmt.Sprintf("Esc closes, ↑↓ scroll, %d of %d lines", min(d.top+room, d.rows), d.rows)
	}
	out = append(out, styleDim.Render(ansi.Truncate(foot, width, "")))
	return out[:min(len(out), max(height, 1))]
}

// String is for tests and for screens that cannot be drawn on.
func (d *dialog) String() string { return d.title + "\n" + strings.TrimSpace(d.text) }
