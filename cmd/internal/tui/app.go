package tui

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/ask"
	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
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

	runs   runs
	view   *api.Run
	text   string         // of the page
	part   protocol.Seq   // Step.Before of the part of the page that is shown
	parts  []protocol.Seq // of the parts behind it
	before protocol.Seq   // of the part before it; 0 where there is none
	lines  wrapped        // text as it is shown
	said   string         // at the bottom
	wrong  bool           // it is an error
	whole  string         // all of the last error

	run, step list
	rows      []row           // of steps
	fans      map[string]*fan // of them, by name
	page      Page
	top       int // line of the page that is shown first
	left      int // cells of it that are left of the screen
	room      int // lines for it when it was drawn last
	focus     pane
	over      *overlay
	form      *ask.Form // that is filled in
	formOf    api.Waiting
	filtering bool // the filter is written
	line      []rune
	wanted    protocol.RunID // is chosen as soon as it is in the list

	older     bool           // older runs are being read
	earlier   bool           // earlier steps are
	looking   protocol.RunID // a run that is being read
	lookAgain bool           // when it was
	paging    bool           // a page is being read
	pageAgain bool

	epoch  int // of the run that is followed
	stop   context.CancelFunc
	moved  chan struct{}
	width  int
	height int
}

// New makes the screen.
func New(ctx context.Context, s Source) *App {
	return &App{ctx: ctx, source: s, view: &api.Run{}, fans: map[string]*fan{}, width: 80, height: 24, moved: make(chan struct{}, 1)}
}

// The messages of commands that have ended.
type (
	gotPage struct {
		id   protocol.RunID
		step Step
		page Page
		text Text
		err  error
	}
	didMove struct{ epoch int }
	failed  struct{ err error }
	later   struct{} // it is time to look for new runs
)

// lookEvery is how often the list of runs is read, for those that others begin.
const lookEvery = 3 * time.Second

// Init reads the runs.
func (a *App) Init() tea.Cmd { return tea.Batch(a.readRuns("", ""), a.wait()) }

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

// readPage reads the page that is shown: one at a time, however fast the choice moves.
func (a *App) readPage() tea.Cmd {
	id, step, page := protocol.RunID(a.run.id), a.chosenStep(), a.page
	if id == "" {
		return nil
	}
	if r := a.chosenRow(); r.fan != nil && r.step == nil {
		if text, is := a.fanPage(r.fan); is {
			a.text, a.before = plain.Text(text), 0
			return nil
		}
	}
	if a.paging {
		a.pageAgain = true
		return nil
	}
	a.paging, a.pageAgain = true, false
	return func() tea.Msg {
		text, err := a.source.Page(a.ctx, id, step, page)
		return gotPage{id, step, page, text, err}
	}
}

func (a *App) gotPage(m gotPage) tea.Cmd {
	a.paging = false
	now := a.chosenStep()
	if r := a.chosenRow(); r.fan != nil && r.step == nil && a.page <= Diff && a.page != Events {
		a.pageAgain = false
		return nil
	}
	if m.id == protocol.RunID(a.run.id) && m.step.ID == now.ID && m.step.Before == now.Before && m.page == a.page {
		a.text, a.before = plain.Text(m.text.Text), m.text.Earlier
		if m.err != nil {
			a.text, a.before = plain.Text(whole(m.err)), 0
		}
	} else {
		a.pageAgain = true
	}
	if a.pageAgain {
		return a.readPage()
	}
	return nil
}

// follow watches the run that is chosen from where it was read, and no other.
func (a *App) follow() tea.Cmd {
	ctx, stop := context.WithCancel(a.ctx)
	a.stop = stop
	id, from, epoch, moved := a.view.ID, a.view.Seq, a.epoch, make(chan struct{}, 1)
	a.moved = moved
	signal := func() {
		select {
		case moved <- struct{}{}:
		default:
		}
	}
	watch := func() tea.Msg {
		if err := a.source.Follow(ctx, id, from, signal); err != nil && !errors.Is(err, context.Canceled) {
			return failed{err}
		}
		return nil
	}
	return tea.Batch(watch, a.next(ctx, epoch, moved))
}

// unfollow ends that.
func (a *App) unfollow() {
	if a.stop != nil {
		a.stop()
	}
	a.stop = nil
	a.epoch++
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
		switch {
		case a.form != nil:
			return a, a.fill(m)
		case a.filtering:
			return a, a.typed("", strings.Join(strings.Fields(plain.Text(m.Content)), " "))
		}
	case later:
		return a, tea.Sequence(a.readRuns("", ""), a.wait())
	case tea.KeyPressMsg:
		return a, a.key(m)
	case gotRuns:
		return a, a.gotRuns(m)
	case gotView:
		return a, a.gotView(m)
	case gotSize:
		return a, a.gotSize(m)
	case gotPage:
		return a, a.gotPage(m)
	case didMove:
		if m.epoch == a.epoch { // one look at the list at a time, however fast the run goes on
			return a, tea.Batch(a.readView(), tea.Sequence(a.readRuns("", ""), a.next(a.ctx, a.epoch, a.moved)))
		}
	case mayDelete:
		a.mayDelete(m)
	case did:
		return a, a.did(m)
	case failed:
		if !gone(m.err) {
			a.fails(m.err)
		}
	}
	return a, nil
}

// chose is called when another run is.
func (a *App) chose() tea.Cmd {
	a.view, a.step, a.looking, a.earlier = &api.Run{}, list{}, "", false
	a.rows, a.fans = nil, map[string]*fan{}
	a.leavePart()
	if a.form != nil {
		a.form = nil
		a.tell("left open: another run is chosen")
	}
	a.unfollow()
	return tea.Batch(a.readView(), a.readOlder())
}

// leavePart goes to the beginning of the newest part of the page.
func (a *App) leavePart() {
	a.text, a.top, a.left, a.part, a.parts, a.before = "", 0, 0, 0, nil, 0
}

func ids[T any](list []T, id func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = id(x)
	}
	return out
}
