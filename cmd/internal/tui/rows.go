package tui

import (
	"fmt"
	"math"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// row is a line of the pane of steps: a step, a fan-out that has too many items for a line each, or what is left out
// of one that is folded.
type row struct {
	id   string
	step *api.Step // nil where it is a fan-out
	fan  *fan      // that it belongs to, if that is folded or was unfolded
}

// isFan reports whether the row is that of a whole fan-out.
func (r row) isFan() bool { return r.fan != nil && r.id == r.fan.name }

// fan is a fan-out among the steps that were read.
type fan struct {
	render.Tally
	name  string
	first int          // the first item that was read
	began protocol.Seq // the event with which item 0 began; 0 where that was not read
	open  bool         // unfolded
	sized bool         // it was asked how many items there are
}

// String is how many items have each state, as soon as all that began were read.
func (x *fan) String() string {
	if x.first > 0 {
		return "reading its items …"
	}
	return x.Tally.String()
}

// Short is String where there is less room.
func (x *fan) Short() string {
	if x.first > 0 {
		return x.String()
	}
	return x.Tally.Short()
}

// hiddenBehind ends the id of the row that says what a folded fan-out leaves out.
const hiddenBehind = "[…"

// oddMost is how many items that want to be looked at a folded fan-out shows.
const oddMost = 10

// forget forgets the states of items, where steps before them are not known any more. What is unfolded stays so.
func (a *App) forget() {
	for name, x := range a.fans {
		a.fans[name] = &fan{Tally: render.NewTally(0), name: name, first: math.MaxInt, open: x.open}
	}
}

// take takes in steps that were read: the states of the items of fan-outs.
func (a *App) take(steps []*api.Step) {
	for _, s := range steps {
		name := render.FanOf(s)
		if name == "" || s.Item == nil {
			continue
		}
		x := a.fans[name]
		if x == nil {
			x = &fan{Tally: render.NewTally(0), name: name, first: math.MaxInt}
			a.fans[name] = x
		}
		if x.first = min(x.first, *s.Item); *s.Item == 0 {
			x.began = s.Began
		}
		x.Take(s)
	}
}

// arrange lays the steps out in rows. Of a long fan-out the items that want to be looked at come first; the others are
// there where it is unfolded.
func (a *App) arrange() {
	odd, rest := map[*fan][]row{}, map[*fan][]row{}
	var order []row
	for _, s := range a.view.Steps {
		x := a.fans[render.FanOf(s)]
		if x == nil || !x.Long() {
			order = append(order, row{id: s.ID, step: s})
			continue
		}
		if odd[x] == nil {
			odd[x] = []row{}
			order = append(order, row{id: x.name, fan: x})
		}
		switch item := (row{id: s.ID, step: s, fan: x}); {
		case x.Odd(s.ID):
			odd[x] = append(odd[x], item)
		case x.open:
			rest[x] = append(rest[x], item)
		}
	}
	a.rows = a.rows[:0]
	for _, r := range order {
		items := odd[r.fan]
		if r.fan != nil && !r.fan.open && len(items) > oddMost {
			items = append(items[:oddMost:oddMost], row{id: r.id + hiddenBehind, fan: r.fan})
		}
		a.rows = append(append(append(a.rows, r), items...), rest[r.fan]...)
	}
	if shown := a.shownIn(a.step.id); shown != "" {
		a.step.id = shown
	}
	a.step.keep(ids(a.rows, func(r row) string { return r.id }))
}

// shownIn is the row that a step is shown in; "" for a step that was not read.
func (a *App) shownIn(step string) string {
	name, _, _ := strings.Cut(step, "[")
	for _, r := range a.rows {
		if r.id == step {
			return step
		}
	}
	if x := a.fans[name]; x != nil && x.Long() {
		return name
	}
	return ""
}

// chosenRow is the row that is chosen.
func (a *App) chosenRow() (r row) {
	if at := a.step.place(); at < len(a.rows) && a.rows[at].id == a.step.id {
		r = a.rows[at]
	}
	return r
}

// reveal chooses a step, in a fan-out that is unfolded for it where it must be.
func (a *App) reveal(step string) {
	if a.shownIn(step) != step {
		if name, _, _ := strings.Cut(step, "["); a.fans[name] != nil {
			a.fans[name].open = true
			a.arrange()
		}
	}
	a.step.choose(step)
}

// fold folds the fan-out that is chosen, or unfolds it.
func (a *App) fold() tea.Cmd {
	r := a.chosenRow()
	if r.fan == nil {
		a.tell("only a fan-out of more items than have a line each can be folded")
		return nil
	}
	left := strings.HasSuffix(r.id, hiddenBehind)
	if r.fan.open = !r.fan.open; !r.fan.open || left {
		a.step.id = r.fan.name
	}
	a.arrange()
	if a.step.id == r.id {
		return nil
	}
	a.leavePart()
	return a.readPage()
}

// gotSize is how many items a fan-out has.
type gotSize struct {
	run  protocol.RunID
	name string
	of   int
	err  error
}

// sizes asks how many items the fan-outs have that go on, once each.
func (a *App) sizes() tea.Cmd {
	var all []tea.Cmd
	for name, x := range a.fans {
		if x.sized || x.began == 0 {
			continue
		}
		x.sized = true
		id, at := a.view.ID, x.began
		all = append(all, func() tea.Msg {
			n, err := a.source.Items(a.ctx, id, at)
			return gotSize{id, name, n, err}
		})
	}
	return tea.Batch(all...)
}

func (a *App) gotSize(m gotSize) tea.Cmd {
	x := a.fans[m.name]
	switch {
	case m.run != a.view.ID || x == nil:
		return nil
	case m.err != nil:
		a.fails(m.err)
		return nil
	}
	x.Of(m.of)
	a.arrange()
	if a.chosenRow().isFan() {
		return a.readPage()
	}
	return nil
}

// missing is how many items of a folded fan-out began before what was read.
func (a *App) missing() (n int) {
	for _, x := range a.fans {
		if x.Long() {
			n = max(n, x.first)
		}
	}
	return n
}

// listedMost is how many items the page of a fan-out names.
const listedMost = 1000

// fanPage is what is shown of a fan-out as a whole; false where the page is one of the run.
func (a *App) fanPage(x *fan) (string, bool) {
	switch a.page {
	case Output:
	case Messages, Diff:
		return "each item has its own: choose one; Space unfolds the fan-out, and folds it again", true
	default:
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", x.name, x)
	odd := 0
	for _, s := range a.view.Steps {
		if render.FanOf(s) != x.name || !x.Odd(s.ID) {
			continue
		}
		if odd++; odd == 1 {
			b.WriteString("\n── to be looked at\n")
		}
		if odd <= listedMost {
			fmt.Fprintf(&b, "%s  %s  %s\n", s.ID, render.StepState(s), render.Note(s))
		}
	}
	if odd > listedMost {
		fmt.Fprintf(&b, "… %s\n", protocol.Plural(odd-listedMost, "more item"))
	}
	b.WriteString("\nSpace unfolds it, and folds it again\n")
	return b.String(), true
}
