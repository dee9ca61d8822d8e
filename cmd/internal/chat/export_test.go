package chat

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"wf/api"
)

// Take has an App take an update in, as its feed would.
func (a *App) Take(u api.Update) { a.updates(updates{epoch: a.epoch, list: []api.Update{u}}) }

// Press presses a key.
func (a *App) Press(name string) {
	a.Update(tea.KeyPressMsg{Code: map[string]rune{"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "end": tea.KeyEnd}[name]})
}

// Resize changes the size of the screen.
func (a *App) Resize(width, height int) { a.Update(tea.WindowSizeMsg{Width: width, Height: height}) }

// Screen is what is on the screen, without colours.
func (a *App) Screen() string { return ansi.Strip(a.View().Content) }

// Lines are all lines of the conversation.
func (a *App) Lines() (out []string) {
	items := a.visible()
	for _, it := range items {
		for i := range a.scroll.of(it).blocks {
			out = append(out, a.scroll.lines(it, i)...)
		}
	}
	return out
}

// Earlier takes an older page in.
func (a *App) Earlier(page []api.Update) { a.earlier(earlier{epoch: a.epoch, events: page}) }
