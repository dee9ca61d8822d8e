package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"wf/api"
)

// Sign is the sign of a state, "" for none.
func Sign(state string) string { return marks[state] }

// Settled is a screen without a terminal that has read all steps of the newest run, and what presses its keys.
func Settled(ctx context.Context, s Source) (a *App, press func(key rune)) {
	a = New(ctx, s)
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	a.Update(a.readRuns("", "")())
	a.Update(a.read(a.runs.all[0].ID, api.Window{})())
	return a, func(key rune) { a.Update(tea.KeyPressMsg{Code: key, Text: string(key)}) }
}
