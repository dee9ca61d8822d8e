package chat

import (
	tea "charm.land/bubbletea/v2"
)

func (a *App) key(m tea.KeyPressMsg) tea.Cmd {
	name := m.String()
	if name != "ctrl+c" {
		a.leaving = false
	}
	if a.panel != nil {
		if a.panel.key(name) {
			p, list := a.panel.(*picker)
			a.panel = nil
			if list {
				return a.chose(p)
			}
		}
		return nil
	}
	if a.completeKey(name) {
		return nil
	}
	empty := a.prompt.area.Length() == 0
	if empty {
		if cmd, did := a.approvalKey(name); did {
			return cmd
		}
	}
	switch name {
	case "ctrl+o":
		a.scroll.whole = !a.scroll.whole
		return nil
	case "ctrl+c":
		return a.leave(empty)
	case "ctrl+z": // a process that is stopped may hold the locks of the store for as long
		a.said = "Ctrl+Z does not stop wf, whose locks others would wait for: Ctrl+C twice leaves, and wf chat " + string(a.info.Run) + " comes back"
		return nil
	case "ctrl+d":
		if empty {
			return a.quit()
		}
	case "esc":
		if a.denying() {
			a.prompt.area.Reset()
		} else if a.running() {
			return a.perform(Interrupt, "")
		}
		return nil
	case "enter":
		return a.send()
	case "$":
		if empty {
			return a.perform(Cost, "")
		}
	case "tab":
		if _, first := begunWith(a.prompt.area.Value()); first != "" {
			a.prompt.area.SetValue("/" + first + " ")
			a.prompt.area.MoveToEnd()
		}
		return nil
	case "pgup":
		return a.back(a.scroll.height - 1)
	case "ctrl+u":
		if empty {
			return a.back(a.scroll.height / 2)
		}
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
			a.owed = 0
			a.scroll.follow()
			return nil
		}
	case "up", "down":
		if a.vertical(map[string]int{"up": -1, "down": 1}[name], empty) {
			return nil
		}
	}
	var cmd tea.Cmd
	a.prompt.area, cmd = a.prompt.area.Update(m)
	return cmd
}

// visible are the items that were not cleared from the screen.
func (a *App) visible() []*Item { return a.t.Items[a.hidden:] }

// vertical goes through the choices of an open question, or through what was written before. It
// reports whether it did; else the key is the box's.
func (a *App) vertical(by int, empty bool) bool {
	w, _ := a.waiting()
	if n := len(w.Choices); n > 0 && empty {
		a.pick = (a.pick + by + n + 1) % (n + 1)
		return true
	}
	if by < 0 && !a.prompt.atTop() || by > 0 && !a.prompt.atBottom() {
		return false
	}
	return a.prompt.look(by)
}

// leave clears the box, stops the agent, and leaves when pressed twice.
func (a *App) leave(empty bool) tea.Cmd {
	if !empty {
		a.prompt.area.Reset()
		return nil
	}
	if a.leaving {
		return a.quit()
	}
	a.leaving = true
	if a.running() {
		return a.perform(Interrupt, "")
	}
	return nil
}

func (a *App) down(n int) {
	a.owed = 0
	a.scroll.move(a.visible(), -n)
}

// back scrolls up, and reads an older page where the oldest line is reached. What is left of
// the way is gone when the page is there.
func (a *App) back(n int) tea.Cmd {
	left := a.scroll.move(a.visible(), max(1, n))
	switch {
	case !a.scroll.top:
		return nil
	case a.hidden > 0:
		a.hidden = 0
		a.scroll.move(a.visible(), left)
		return nil
	case a.t.First <= 1:
		return nil
	}
	a.owed += left
	if a.loading {
		return nil
	}
	a.loading = true
	ctx, session, epoch, first := a.ctx, a.session, a.epoch, a.t.First
	return func() tea.Msg {
		events, err := session.Page(ctx, first, page)
		return earlier{epoch, events, err}
	}
}
