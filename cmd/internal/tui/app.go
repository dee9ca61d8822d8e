package tui

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// pane is a part of the screen that keys can go to.
type pane int

const (
	runsPane pane = iota
	stepsPane
	mainPane
	panes
)

// App is the screen. It is a bubbletea model; everything that takes time happens in commands.
type App struct {
	ctx    context.Context
	source Source

	runs   []api.Row
	read   bool      // the runs were, once
	now    time.Time // when they were
	filter string
	view   *api.Run
	text   string // of the page
	said   string

	run, step list
	page      Page
	top       int // line of the page that is shown first
	left      int // cells of it that are left of the screen
	room      int // lines for it when it was drawn last
	focus     pane
	typing    typing // what is written at the bottom
	line      []rune
	help      bool

	epoch  int // of the run that is followed
	stop   context.CancelFunc
	moved  chan struct{}
	width  int
	height int
}

// typing says what the line at the bottom is for.
type typing int

const (
	nothing typing = iota
	filtering
	answering
)

// New makes the screen.
func New(ctx context.Context, s Source) *App {
	return &App{ctx: ctx, source: s, view: &api.Run{}, width: 80, height: 24, moved: make(chan struct{}, 1)}
}

// The messages of commands that have ended.
type (
	gotRuns struct {
		runs []api.Row
		now  time.Time
		err  error
	}
	gotView struct {
		id   protocol.RunID
		view *api.Run
		err  error
	}
	gotPage struct {
		id   protocol.RunID
		step string
		page Page
		text string
		err  error
	}
	didMove struct{ epoch int }
	did     struct{ err error }
	later   struct{} // it is time to look for new runs
)

// lookEvery is how often the list of runs is read, for those that others begin.
const lookEvery = 3 * time.Second

// Init reads the runs.
func (a *App) Init() tea.Cmd { return tea.Batch(a.readRuns, a.wait()) }

func (a *App) wait() tea.Cmd {
	return func() tea.Msg {
		timer := time.NewTimer(lookEvery)
		defer timer.Stop()
		select {
		case <-timer.C:
			return later{}
		case <-a.ctx.Done():
			return nil
		}
	}
}

func (a *App) readRuns() tea.Msg {
	runs, err := a.source.Runs(a.ctx)
	return gotRuns{runs, time.Now(), err}
}

func (a *App) readView() tea.Cmd {
	id := a.run.id
	if id == "" {
		return nil
	}
	return func() tea.Msg {
		v, err := a.source.Run(a.ctx, protocol.RunID(id))
		return gotView{protocol.RunID(id), v, err}
	}
}

func (a *App) readPage() tea.Cmd {
	id, step, page := protocol.RunID(a.run.id), a.step.id, a.page
	if id == "" {
		return nil
	}
	return func() tea.Msg {
		text, err := a.source.Page(a.ctx, id, step, page)
		return gotPage{id, step, page, text, err}
	}
}

// follow watches the run that is chosen, and no other.
func (a *App) follow() tea.Cmd {
	if a.stop != nil {
		a.stop()
	}
	a.epoch++
	if a.run.id == "" {
		return nil
	}
	ctx, stop := context.WithCancel(a.ctx)
	a.stop = stop
	id, epoch, moved := protocol.RunID(a.run.id), a.epoch, make(chan struct{}, 1)
	a.moved = moved
	signal := func() {
		select {
		case moved <- struct{}{}:
		default:
		}
	}
	watch := func() tea.Msg {
		if err := a.source.Follow(ctx, id, signal); err != nil && !errors.Is(err, context.Canceled) {
			return did{err}
		}
		return nil
	}
	return tea.Batch(watch, a.next(ctx, epoch, moved))
}

func (a *App) next(ctx context.Context, epoch int, moved chan struct{}) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-moved:
			return didMove{epoch}
		case <-ctx.Done():
			return nil
		}
	}
}

// Update takes what came in.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		a.width, a.height = m.Width, m.Height
		return a, frame.Resized()
	case tea.PasteMsg:
		if a.typing != nothing {
			return a, a.typed("", strings.Join(strings.Fields(plain.Text(m.Content)), " "))
		}
	case later:
		return a, tea.Sequence(a.readRuns, a.wait())
	case tea.KeyPressMsg:
		return a, a.key(m)
	case gotRuns:
		return a, a.gotRuns(m)
	case gotView:
		return a, a.gotView(m)
	case gotPage:
		if m.id == protocol.RunID(a.run.id) && m.step == a.step.id && m.page == a.page {
			a.text = plain.Text(m.text)
			if m.err != nil {
				a.text = plain.Text(m.err.Error())
			}
		}
	case didMove:
		if m.epoch == a.epoch {
			// One look at a time, however fast the run goes on.
			return a, tea.Sequence(a.readView(), a.readRuns, a.next(a.ctx, a.epoch, a.moved))
		}
	case did:
		a.say(m.err)
	}
	return a, nil
}

func (a *App) say(err error) {
	a.said = ""
	if err != nil {
		a.said = plain.Line(plain.Text(err.Error()), 300)
	}
}

func (a *App) gotRuns(m gotRuns) tea.Cmd {
	if m.err != nil {
		a.say(m.err)
		return nil
	}
	a.runs, a.now, a.read = m.runs, m.now, true
	if cmd := a.refilter(); cmd != nil {
		return cmd
	}
	for _, r := range a.runs {
		if r.ID == a.view.ID && render.RowState(r).Word() != render.StateOf(a.view).Word() {
			return a.readView() // its process was killed: that is no event
		}
	}
	return nil
}

// chose is called when another run is.
func (a *App) chose() tea.Cmd {
	a.view, a.step, a.text, a.top, a.left = &api.Run{}, list{}, "", 0, 0
	return tea.Batch(a.follow(), a.readView())
}

func (a *App) gotView(m gotView) tea.Cmd {
	if m.id != protocol.RunID(a.run.id) {
		return nil
	}
	if m.err != nil {
		a.say(m.err)
		return nil
	}
	atEnd := a.step.id == "" || len(a.view.Steps) > 0 && a.step.id == a.view.Steps[len(a.view.Steps)-1].ID
	a.view = m.view
	if atEnd && len(m.view.Steps) > 0 && a.focus != mainPane { // the newest step is followed
		a.step.id = m.view.Steps[len(m.view.Steps)-1].ID
	}
	a.step.keep(ids(m.view.Steps, func(s *api.Step) string { return s.ID }))
	return a.readPage()
}

func ids[T any](list []T, id func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = id(x)
	}
	return out
}
