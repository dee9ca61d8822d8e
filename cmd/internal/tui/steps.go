package tui

import (
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

const (
	stepsRead  = 200    // steps that are read at a time
	stepsAgain = 20     // that are read again at least while the run moves
	stepsMost  = 2000   // and at most
	itemsMost  = 20_000 // steps that are read at once for the items of a fan-out
)

// gotView is a run with its newest steps, or with earlier ones.
type gotView struct {
	id   protocol.RunID
	w    api.Window
	view *api.Run
	err  error
}

// readView reads the run that is chosen: what it has come to, and its newest steps. One look at a time, however
// fast it goes on.
func (a *App) readView() tea.Cmd {
	id := protocol.RunID(a.run.id)
	if id == "" {
		return nil
	}
	if a.looking == id {
		a.lookAgain = true
		return nil
	}
	a.looking, a.lookAgain = id, false
	return a.read(id, api.Window{Limit: a.unsettled()})
}

func (a *App) read(id protocol.RunID, w api.Window) tea.Cmd {
	return func() tea.Msg {
		v, err := a.source.Run(a.ctx, id, w)
		if err == nil {
			render.AtRest(v)
		}
		return gotView{id, w, v, err}
	}
}

// unsettled is how many of the newest steps are read: the first time a part, then as many as are known back to the first
// that goes on, and some more for new ones.
func (a *App) unsettled() int {
	if len(a.view.Steps) == 0 {
		return stepsRead
	}
	for i, s := range a.view.Steps {
		if s.Ended == 0 || s.CID == nil {
			return min(len(a.view.Steps)-i+stepsAgain, stepsMost)
		}
	}
	return stepsAgain
}

// readEarlier reads the steps before those that are known, where the choice is near their beginning, and the items of a
// fan-out that is folded: at once, since each part of them would be looked for from where the fan-out began.
func (a *App) readEarlier() tea.Cmd {
	missing := a.missing()
	if a.earlier || a.view.Earlier == 0 || a.step.place() > nearEnd && missing == 0 {
		return nil
	}
	a.earlier = true
	return a.read(a.view.ID, api.Window{Limit: max(stepsRead, min(missing+stepsAgain, itemsMost)), Before: a.view.Earlier})
}

func (a *App) gotView(m gotView) tea.Cmd {
	if m.id == protocol.RunID(a.run.id) && m.err == nil && m.w.Before == 0 && !joins(a.view, m.view) {
		if more := a.between(m.view); m.w.Limit < more {
			return a.read(m.id, api.Window{Limit: more})
		}
	}
	if m.w.Before == 0 && a.looking == m.id {
		a.looking = ""
	}
	if m.id != protocol.RunID(a.run.id) {
		return nil
	}
	if m.w.Before > 0 {
		a.earlier = false
	}
	switch {
	case gone(m.err):
		return a.readRuns("", "")
	case m.err != nil:
		a.fails(m.err)
		return nil
	}
	var cmds []tea.Cmd
	if m.w.Before > 0 {
		if m.w.Before == a.view.Earlier { // else the steps were read anew meanwhile
			a.view.Steps, a.view.Earlier = slices.Concat(m.view.Steps, a.view.Steps), m.view.Earlier
			a.take(m.view.Steps)
			a.arrange()
			if a.chosenRow().isFan() {
				cmds = append(cmds, a.readPage())
			}
		}
		return tea.Batch(append(cmds, a.readEarlier(), a.sizes())...)
	}
	atEnd := a.step.id == "" || a.step.id == a.newest()
	moved := a.view.ID != m.id || a.view.Head != m.view.Head || a.view.Count() != m.view.Count() || m.view.Status != a.view.Status || m.view.Idle != a.view.Idle
	if !joins(a.view, m.view) {
		a.forget()
	}
	a.take(m.view.Steps)
	a.view = joined(a.view, m.view)
	before := a.step.id
	a.arrange()
	if n := a.newest(); atEnd && a.focus != mainPane && a.form == nil && a.step.id != n { // the newest step is followed
		a.step.choose(n)
		a.top, a.part = 0, 0
	}
	cmds = append(cmds, a.readEarlier(), a.sizes())
	if a.stop == nil {
		cmds = append(cmds, a.follow())
	}
	if a.lookAgain {
		cmds = append(cmds, a.readView())
	}
	if moved && (a.page != Verify || a.text == "") || a.step.id != before || a.text == "" { // a proof is asked for, and not repeated
		cmds = append(cmds, a.readPage())
	}
	return tea.Batch(cmds...)
}

// newest is the row of the newest step, "" without any.
func (a *App) newest() string {
	if n := len(a.view.Steps); n > 0 {
		return a.shownIn(a.view.Steps[n-1].ID)
	}
	return ""
}

// between is how many of the newest steps are read where others began between them and those that were read before: as
// many as join both, or a part where that is too many.
func (a *App) between(now *api.Run) int {
	if n := now.Count() - a.view.Count() + a.unsettled(); a.view.ID == now.ID && n > stepsRead && n <= stepsMost {
		return n
	}
	return stepsRead
}

// joins reports whether the newest steps of a run go on from the earlier ones that were read before, or need none.
func joins(old, now *api.Run) bool {
	return now.Earlier == 0 || old.ID == now.ID && len(now.Steps) > 0 &&
		slices.ContainsFunc(old.Steps, func(s *api.Step) bool { return s.ID == now.Steps[0].ID })
}

// joined are the newest steps of a run behind the earlier ones that were read before, if there is none between.
func joined(old, now *api.Run) *api.Run {
	if now.Earlier == 0 || !joins(old, now) {
		return now
	}
	at := slices.IndexFunc(old.Steps, func(s *api.Step) bool { return s.ID == now.Steps[0].ID })
	now.Steps, now.Earlier = slices.Concat(old.Steps[:at], now.Steps), old.Earlier
	return now
}

// chosenStep is the step that is chosen, as pages ask for it.
func (a *App) chosenStep() Step {
	step := Step{Newest: a.view.Seq, Before: a.part}
	if r := a.chosenRow(); r.step != nil {
		step.ID, step.Shown = r.id, r.step
		step.Began, step.Ended = r.step.Began, r.step.Ended
	}
	return step
}

// gone reports whether a run is no more, of which the list tells.
func gone(err error) bool {
	return errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted)
}
