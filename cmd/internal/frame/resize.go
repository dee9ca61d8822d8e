package frame

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Resized is what a program does when its terminal has another size: it draws all anew, on a
// terminal that scrolls as a whole. A frame for the old size may come when the terminal has the
// new one already; where it scrolls, it leaves the region of the old size behind, and everything
// later would be drawn wrongly.
func Resized() tea.Cmd {
	return tea.Sequence(tea.Raw(ansi.SaveCursor+ansi.SetTopBottomMargins(0, 0)+ansi.RestoreCursor), tea.ClearScreen)
}
