// Package frame draws a border around lines, with words in it:
//
//	╭─ Title ──────────╮
//	│ a line           │
//	╰───────── a hint ─╯
//
// # Promise
//
// A frame has exactly the size that was asked for. Where there is no room for a border there
// is none, and the title is a line of its own.
package frame

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/plain"
)

// Frame is a border with what is in it.
type Frame struct {
	Title string         // in the upper edge; may hold colours
	Hint  string         // in the lower edge
	Style lipgloss.Style // of the edges
}

// The smallest size with a border.
const (
	minWidth  = 24
	minHeight = 4
)

// Inside is the room for lines in a frame of a size.
func Inside(width, height int) (w, h int) {
	if width < minWidth || height < minHeight {
		return max(1, width), max(0, height-1)
	}
	return width - 4, height - 2
}

// Draw puts lines into the frame: exactly height lines of exactly width cells.
func (f Frame) Draw(lines []string, width, height int) []string {
	w, h := Inside(width, height)
	out := make([]string, 0, height)
	if w == width || width < 1 { // no border
		out = append(out, plain.Pad(plain.Cut(f.Title, width, "…"), width))
		for i := range h {
			out = append(out, plain.Pad(plain.Cut(at(lines, i), width, "…"), width))
		}
		return out[:max(0, min(len(out), height))]
	}
	side := f.Style.Render("│")
	out = append(out, f.edge("╭", "╮", f.Title, width, false))
	for i := range h {
		out = append(out, side+" "+plain.Pad(plain.Cut(at(lines, i), w, "…"), w)+" "+side)
	}
	return append(out, f.edge("╰", "╯", f.Hint, width, true))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// edge is a line of width cells with words in it, at its right end where they are a hint.
func (f Frame) edge(left, right, words string, width int, end bool) string {
	if words != "" {
		words = " " + plain.Cut(words, width-6, "…") + " "
	}
	line := strings.Repeat("─", max(0, width-3-plain.Width(words)))
	if end {
		return f.Style.Render(left+line) + words + f.Style.Render("─"+right)
	}
	return f.Style.Render(left+"─") + words + f.Style.Render(line+right)
}

// Resized is what a program does when its terminal has another size: it draws all anew, on a
// terminal that scrolls as a whole. A frame for the old size may come when the terminal has the
// new one already; where it scrolls, it leaves the region of the old size behind, and everything
// later would be drawn wrongly.
func Resized() tea.Cmd {
	return tea.Sequence(tea.Raw(ansi.SaveCursor+ansi.SetTopBottomMargins(0, 0)+ansi.RestoreCursor), tea.ClearScreen)
}
