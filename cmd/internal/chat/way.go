package chat

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
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
		a.said = fmt.Sprintf("the agent works: Esc interrupts it, then /%s", action)
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

// turnList lets the person choose to which turn the conversation goes back.
type turnList struct {
	turns  []api.Turn
	at     int
	top    int
	room   int
	chosen string
}

// newTurnList begins at the newest turn.
func newTurnList(turns []api.Turn) *turnList { return &turnList{turns: turns, at: len(turns) - 1} }

func (l *turnList) key(name string) (closed bool) {
	switch name {
	case "esc", "q", "ctrl+c":
		return true
	case "enter":
		l.chosen = fmt.Sprint(l.at + 1)
		return true
	case "up", "k":
		l.at--
	case "down", "j":
		l.at++
	case "pgup":
		l.at -= max(1, l.room-1)
	case "pgdown":
		l.at += max(1, l.room-1)
	case "home", "g":
		l.at = 0
	case "end", "G":
		l.at = len(l.turns) - 1
	}
	l.at = max(0, min(l.at, len(l.turns)-1))
	return false
}

func (l *turnList) draw(width, height int) []string {
	w, h := frame.Inside(width, height)
	l.room = h
	l.top = max(0, min(l.top, l.at, len(l.turns)-h))
	if l.at >= l.top+h {
		l.top = l.at - h + 1
	}
	var lines []string
	for i := l.top; i < min(len(l.turns), l.top+h); i++ {
		x := l.turns[i]
		text := plain.Pad(plain.Cut(fmt.Sprintf("%3d  %s  %s", i+1, x.Step, plain.Line(plain.Text(x.Text), 2*w)), w, "…"), w)
		if i == l.at {
			text = styleChosen.Render(text)
		}
		lines = append(lines, text)
	}
	f := frame.Frame{Title: styleQuestion.Render("Back to before a message, with the files"),
		Hint: styleDim.Render("↑↓ choose · Enter takes back it and all behind it · Esc closes"), Style: styleDim}
	return f.Draw(lines, width, height)
}
