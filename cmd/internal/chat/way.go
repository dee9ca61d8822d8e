package chat

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"
)

// A way is a going back, or forth, that is under way.
type way struct {
	stop   context.CancelFunc
	far    chan [2]int // how many files were changed, of how many
	leaves bool        // the person leaves when it has ended
}

// wayOn tells how far a way is.
type wayOn struct {
	way      *way
	done, of int
}

// goBack takes turns back, or forth again: as long as it takes.
func (a *App) goBack(action Action, arg string) tea.Cmd {
	if a.running() {
		a.said = fmt.Sprintf("the agent works: Esc stops it, then /%s", action)
		return nil
	}
	ctx, stop := context.WithCancel(a.ctx)
	w := &way{stop: stop, far: make(chan [2]int, 1)}
	a.going, a.said, a.stays = w, "", false
	epoch, session := a.epoch, a.session
	each := func(done, of int) {
		select {
		case w.far <- [2]int{done, of}:
		default: // the screen is behind
		}
	}
	return tea.Batch(w.next(), func() tea.Msg {
		defer stop()
		defer close(w.far)
		out, err := session.Command(ctx, Command{Action: action, Arg: arg, Each: each})
		return outcome{epoch: epoch, result: out, err: err, way: w}
	})
}

// next waits until a way is further.
func (w *way) next() tea.Cmd {
	return func() tea.Msg {
		at, more := <-w.far
		if !more {
			return nil
		}
		return wayOn{w, at[0], at[1]}
	}
}

func (a *App) wayOn(m wayOn) tea.Cmd {
	if m.way != a.going {
		return nil
	}
	if !m.way.leaves {
		a.said = fmt.Sprintf("%d of %d files are in place", m.done, m.of)
	}
	return m.way.next()
}

// quit leaves. A way that is under way is stopped first: the next chat ends it.
func (a *App) quit() tea.Cmd {
	if a.going == nil {
		return tea.Quit
	}
	a.going.leaves = true
	a.going.stop()
	return nil
}
