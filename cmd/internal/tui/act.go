package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/ask"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// did is what came of something that was asked for.
type did struct {
	what string         // was asked for
	said string         // when it went well
	next protocol.RunID // a run to choose then, "" for the one that is chosen
	err  error
}

// do carries out what was asked for. It is not given up when the screen closes.
func (a *App) do(what string, f func(ctx context.Context) did) tea.Cmd {
	ctx := context.WithoutCancel(a.ctx)
	a.tell(what + " …")
	return func() tea.Msg {
		x := f(ctx)
		x.what = what
		return x
	}
}

// did takes in what came of it.
func (a *App) did(m did) tea.Cmd {
	if m.err != nil {
		a.refused(m.what, m.err)
	} else {
		a.tell(m.said)
	}
	if m.next != "" {
		a.wanted = m.next
		a.runs.look("")
	}
	return tea.Batch(a.readRuns("", ""), a.readView())
}

// asked is a question that one of its keys agrees to.
func (a *App) asked(title, words string, does map[string]func() tea.Cmd, hint string) {
	a.over = text(title, words)
	a.over.does, a.over.hint = does, hint+" · any other key: nothing"
}

// act takes the keys that change a run.
func (a *App) act(name string) tea.Cmd {
	id := protocol.RunID(a.run.id)
	row, known := a.runs.row(a.run.id)
	if !known {
		a.tell("there is no run to do that to")
		return nil
	}
	run := "run " + string(id)
	if title := plain.Line(plain.Text(row.Title), 60); title != "" {
		run += " (" + title + ")"
	}
	switch name {
	case "a":
		return a.answers()
	case "R":
		return a.do("resume "+string(id), func(ctx context.Context) did {
			return did{said: "run " + string(id) + " goes on", err: a.source.Resume(ctx, id)}
		})
	case "X":
		a.asked("Cancel run "+string(id)+"?", run+" is cancelled permanently: it cannot be resumed, only forked.", map[string]func() tea.Cmd{"y": func() tea.Cmd {
			return a.do("cancel "+string(id), func(ctx context.Context) did {
				return did{said: "run " + string(id) + " is cancelled", err: a.source.Cancel(ctx, id)}
			})
		}}, "y cancels it")
	case "F":
		step := a.chosenStep().ID
		switch {
		case a.step.id == "":
			a.tell("the run has no step yet to fork at")
			return nil
		case step == "":
			a.tell("choose an item to fork at: Space unfolds the fan-out")
			return nil
		}
		fork := func(hold bool) func() tea.Cmd {
			return func() tea.Cmd { return a.fork(id, step, hold) }
		}
		a.asked("Fork run "+string(id)+" at "+step+"?", "A new run shares what came before "+step+", and performs it and what began after it again, in the same workspace. The run itself stays as it is.",
			map[string]func() tea.Cmd{"y": fork(false), "h": fork(true)}, "y forks it and goes on · h only forks it")
	case "D":
		return func() tea.Msg {
			d, err := a.source.Delete(a.ctx, id, true)
			return mayDelete{id, run, d, err}
		}
	}
	return nil
}

func (a *App) fork(id protocol.RunID, step string, hold bool) tea.Cmd {
	return a.do("fork "+string(id)+" at "+step, func(ctx context.Context) did {
		made, err := a.source.Fork(ctx, id, step, hold)
		if err != nil {
			return did{err: err}
		}
		said := fmt.Sprintf("run %s is a fork of %s at %s", made.ID, id, step)
		if hold {
			said += "; R goes on with it"
		}
		for _, w := range made.Warnings {
			said += "; warning: " + w
		}
		return did{said: said, next: made.ID}
	})
}

// mayDelete is what would be deleted.
type mayDelete struct {
	id  protocol.RunID
	run string
	dry *api.Deleted
	err error
}

func (a *App) mayDelete(m mayDelete) {
	if m.err != nil {
		a.refused("delete "+string(m.id), m.err)
		return
	}
	if a.over != nil || a.form != nil || a.filtering || a.run.id != string(m.id) { // the next key is meant for something else
		a.tell("run " + string(m.id) + " was not deleted: press D again")
		return
	}
	words := m.run + " is deleted permanently"
	if n := len(m.dry.Runs) - 1; n > 0 {
		words += fmt.Sprintf(", with %s of its sub-workflows", protocol.Plural(n, "run"))
	}
	a.asked("Delete run "+string(m.id)+"?", words+". A tombstone with its id is all that is left; this cannot be undone.", map[string]func() tea.Cmd{"y": func() tea.Cmd {
		return a.do("delete "+string(m.id), func(ctx context.Context) did {
			_, err := a.source.Delete(ctx, m.id, false)
			return did{said: "run " + string(m.id) + " was deleted; wf gc frees the space", err: err}
		})
	}}, "y deletes "+string(m.id))
}

// answers opens the form for what the run waits for.
func (a *App) answers() tea.Cmd {
	q, ok := a.question()
	switch {
	case a.view.ID != protocol.RunID(a.run.id):
		a.tell("the run is being read: press a again")
		return nil
	case !ok:
		a.tell("run " + a.run.id + " waits for no answer")
		if q.Kind == protocol.WaitSignal {
			a.tell("it waits for a signal: wf answer " + a.run.id + " --signal " + protocol.ShellWord(q.Question))
		}
		return nil
	}
	a.form, a.formOf = ask.NewForm(q), q
	a.focus = mainPane
	if a.form.State() == ask.Filled { // a form without fields
		return a.fill(nil)
	}
	if q.Step != a.step.id { // what is answered is shown
		a.reveal(q.Step)
		a.top, a.left, a.part, a.text = 0, 0, 0, ""
		return a.readPage()
	}
	return nil
}

// question is the one that the chosen step asks, or the first that is open; without one, what else is waited for.
func (a *App) question() (q api.Waiting, ok bool) {
	asks := func(w api.Waiting) bool { return w.Kind != protocol.WaitTimer && w.Kind != protocol.WaitSignal }
	for _, w := range a.view.Waiting {
		if w.Step == a.step.id && asks(w) {
			return w, true
		}
	}
	if i := slices.IndexFunc(a.view.Waiting, asks); i >= 0 {
		return a.view.Waiting[i], true
	}
	if len(a.view.Waiting) > 0 {
		q = a.view.Waiting[0]
	}
	return q, false
}

// fill takes a key or a pasted text for the form.
func (a *App) fill(msg tea.Msg) tea.Cmd {
	a.form.Update(msg)
	switch a.form.State() {
	case ask.Left:
		a.form = nil
		a.tell("left open: a answers it, and so does " + strings.TrimSpace("wf answer "+a.run.id))
	case ask.Filled:
		answer, err := a.form.Answer()
		a.form = nil
		if err != nil {
			a.refused("answer "+a.formOf.Step, err)
			return nil
		}
		id, step := protocol.RunID(a.run.id), a.formOf.Step
		return a.do("answer "+step, func(ctx context.Context) did {
			return did{said: "answered " + step, err: a.source.Answer(ctx, id, answer)}
		})
	}
	return nil
}

// formLines draw the form below what is asked.
func (a *App) formLines(width, height int) []string {
	form := a.form.Lines(width, max(1, height-1))
	var question []string
	for _, l := range plain.Wrap("⏸ "+plain.Text(a.formOf.Question), width) {
		question = append(question, busy.Render(l))
	}
	if asking := render.Asking(a.formOf); asking != "" {
		question = append(question, dim.Render(plain.Line(plain.Text(asking), 300)))
	}
	if room := max(0, height-len(form)); len(question) > room {
		question = question[:room]
		if room > 0 {
			question[room-1] = dim.Render("… Esc, and the page shows all of it")
		}
	}
	return append(question, form...)
}
