package chat

import (
	tea "charm.land/bubbletea/v2"

	"wf/protocol"
)

// key takes a key press.
func (a *App) key(m tea.KeyPressMsg) tea.Cmd {
	name := m.String()
	if name != "ctrl+c" {
		a.leaving = false
	}
	if a.dialog != nil {
		if a.dialog.key(name, a.height) {
			a.dialog = nil
		}
		return nil
	}
	empty := a.prompt.area.Length() == 0
	switch name {
	case "ctrl+c":
		return a.leave(empty)
	case "ctrl+d":
		if empty {
			return tea.Quit
		}
	case "esc":
		if a.t.Status == string(protocol.Running) {
			return a.perform(Interrupt, "")
		}
		return nil
	case "enter":
		return a.send()
	case "$":
		if empty {
			return a.perform(Cost, "")
		}
	case "pgup", "ctrl+u":
		return a.back(a.scroll.height - 1)
	case "pgdown":
		a.down(a.scroll.height - 1)
		return nil
	case "shift+up":
		return a.back(1)
	case "shift+down":
		a.down(1)
		return nil
	case "end":
		if empty {
			a.down(a.scroll.up)
			return nil
		}
	case "up":
		if a.prompt.area.Line() == 0 && a.prompt.look(-1) {
			return nil
		}
	case "down":
		if a.prompt.area.Line() == a.prompt.area.LineCount()-1 && a.prompt.look(1) {
			return nil
		}
	}
	var cmd tea.Cmd
	a.prompt.area, cmd = a.prompt.area.Update(m)
	return cmd
}

// leave clears the box, or leaves when pressed twice.
func (a *App) leave(empty bool) tea.Cmd {
	if !empty {
		a.prompt.area.Reset()
		return nil
	}
	if a.leaving {
		return tea.Quit
	}
	a.leaving = true
	a.said = "Ctrl+C again leaves; the run stays as it is"
	return nil
}

// down scrolls down.
func (a *App) down(n int) {
	a.owed = 0
	a.scroll.move(-n)
}

// back scrolls up, and reads an older page where the oldest line is reached. What is left of
// the way is gone when the page is there.
func (a *App) back(n int) tea.Cmd {
	left := a.scroll.move(max(1, n))
	switch {
	case !a.scroll.atTop():
		return nil
	case a.hidden > 0:
		a.hidden = 0
		a.scroll.older(a.t.Items)
		a.scroll.move(left)
		return nil
	case a.t.First <= 1:
		return nil
	}
	a.owed += left
	if a.loading {
		return nil
	}
	a.loading = true
	return earlierThan(a.ctx, a.session, a.epoch, a.t.First)
}
