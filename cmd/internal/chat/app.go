package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// App is the screen of a session. It is a bubbletea model; everything that takes time happens
// in commands.
type App struct {
	ctx     context.Context
	session Session
	info    Info
	feed    *feed
	epoch   int // grows when the session goes over to another run
	stop    context.CancelFunc

	t       Transcript
	hidden  int    // items before are cleared from the screen
	loading bool   // an older page is on its way
	owed    int    // lines to scroll up once it is there
	link    string // what is wrong with the connection, "" is nothing
	said    string // the newest word of a command
	ready   bool   // the first page is there
	leaving bool   // Ctrl+C was pressed once
	busy    int    // commands under way

	width, height int
	resized       uint8 // how often, for View
	scroll        scroll
	prompt        prompt
	dialog        *dialog
	failed        error // why it ended, if it ended badly
}

// New makes the screen of a session; history is what the person wrote in earlier ones.
func New(ctx context.Context, s Session, history []string) *App {
	return &App{ctx: ctx, session: s, info: s.Info(), feed: newFeed(), width: 80, height: 24, prompt: newPrompt(history)}
}

// History is what the person wrote, for the next session.
func (a *App) History() []string { return a.prompt.history }

// Err is why the screen ended, nil where the person left it.
func (a *App) Err() error { return a.failed }

// Run is the run that was on the screen last.
func (a *App) Run() protocol.RunID { return a.info.Run }

// Init reads the first page.
func (a *App) Init() tea.Cmd { return open(a.ctx, a.session, a.epoch) }

// Update takes what came in.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		a.width, a.height = m.Width, m.Height
		a.resized++
		return a, nil
	case opened:
		return a, a.opened(m)
	case updates:
		return a, a.updates(m)
	case earlier:
		return a, a.earlier(m)
	case ended:
		if m.epoch == a.epoch && m.err != nil && !errors.Is(m.err, context.Canceled) {
			a.link = m.err.Error()
		}
		return a, nil
	case outcome:
		return a, a.outcome(m)
	case tea.KeyPressMsg:
		return a, a.key(m)
	}
	if a.dialog != nil {
		return a, nil
	}
	var cmd tea.Cmd
	a.prompt.area, cmd = a.prompt.area.Update(msg)
	return a, cmd
}

func (a *App) opened(m opened) tea.Cmd {
	if m.epoch != a.epoch {
		return nil
	}
	if m.err != nil {
		a.failed = m.err
		return tea.Quit
	}
	a.ready = true
	for _, e := range m.events {
		a.t.Apply(e)
	}
	ctx, stop := context.WithCancel(a.ctx)
	a.stop = stop
	epoch, feed, session := a.epoch, a.feed, a.session
	follow := func() tea.Msg { return ended{epoch, session.Follow(ctx, m.tip, feed.put)} }
	return tea.Batch(follow, feed.next(a.ctx, epoch))
}

func (a *App) updates(m updates) tea.Cmd {
	if m.epoch != a.epoch {
		return nil
	}
	for _, u := range m.list {
		switch {
		case u.Event != nil:
			a.t.Apply(*u.Event)
			a.said = "" // what was said of a command is old news
		case u.Delta != nil:
			a.t.Live(*u.Delta)
		case u.Reset != nil:
			a.t.Truncate(*u.Reset)
			a.hidden = 0
			a.scroll.older(a.t.Items)
			a.said = fmt.Sprintf("the history changed after event %d", *u.Reset)
		case u.Live:
			a.link = ""
		default:
			a.link = u.Status
		}
	}
	return a.feed.next(a.ctx, a.epoch)
}

func (a *App) earlier(m earlier) tea.Cmd {
	owed := a.owed
	a.loading, a.owed = false, 0
	switch {
	case m.epoch != a.epoch:
	case m.err != nil:
		a.said = "older events: " + m.err.Error()
	default:
		a.t.Prepend(m.events)
		a.scroll.older(a.t.Items[a.hidden:])
		if owed > 0 {
			return a.back(owed)
		}
	}
	return nil
}

// outcome is how a command of the person went.
type outcome struct {
	epoch   int
	command Command
	result  Outcome
	err     error
}

func (a *App) outcome(m outcome) tea.Cmd {
	a.busy--
	switch {
	case m.epoch != a.epoch:
	case m.err != nil:
		a.said = plain.Line(m.err.Error(), 300)
	case m.result.Moved:
		return a.move()
	case m.result.Dialog:
		a.dialog = &dialog{title: m.result.Title, text: plain.Text(m.result.Text)}
	default:
		a.said = plain.Line(plain.Text(m.result.Text), 300)
	}
	return nil
}

// move goes over to the run that the session is now.
func (a *App) move() tea.Cmd {
	if a.stop != nil {
		a.stop()
	}
	a.epoch++
	a.info, a.t, a.hidden, a.ready, a.feed = a.session.Info(), Transcript{}, 0, false, newFeed()
	a.scroll = scroll{}
	a.said = "now run " + string(a.info.Run)
	return open(a.ctx, a.session, a.epoch)
}

// do carries out something of the session's aside.
func (a *App) do(c Command, f func(ctx context.Context) (Outcome, error)) tea.Cmd {
	epoch, ctx := a.epoch, a.ctx
	a.busy++
	a.said = ""
	return func() tea.Msg {
		out, err := f(ctx)
		return outcome{epoch, c, out, err}
	}
}

func (a *App) perform(action Action, arg string) tea.Cmd {
	c := Command{action, arg}
	return a.do(c, func(ctx context.Context) (Outcome, error) { return a.session.Command(ctx, c) })
}

// waiting is the question that the next line answers.
func (a *App) waiting() (Waiting, bool) {
	if len(a.t.Waiting) == 0 {
		return Waiting{}, false
	}
	return a.t.Waiting[0], true
}

// send takes the line that was written.
func (a *App) send() tea.Cmd {
	line := a.prompt.take()
	a.scroll.up = 0
	if line == "" {
		return nil
	}
	if c, ok := commandOf(line); ok {
		return a.command(c)
	}
	w, asked := a.waiting()
	if asked && len(w.Choices) > 0 {
		value, known := choiceOf(w, line)
		if !known {
			a.said = "pick one by its number or name"
			return nil
		}
		return a.do(Command{}, func(ctx context.Context) (Outcome, error) { return Outcome{}, a.session.Choose(ctx, w.Step, value) })
	}
	text := strings.TrimPrefix(line, "/")
	if !strings.HasPrefix(line, "//") {
		text = line
	}
	return a.do(Command{}, func(ctx context.Context) (Outcome, error) { return Outcome{}, a.session.Say(ctx, w.Step, text) })
}

func (a *App) command(c command) tea.Cmd {
	switch c.name {
	case "clear":
		a.hidden = len(a.t.Items)
		return nil
	case "think":
		a.think()
		return nil
	case "help":
		a.dialog = &dialog{title: "Help", text: helpText}
		return nil
	case "quit":
		return tea.Quit
	}
	switch action := Action(c.name); action {
	case Compact, Resume, Reset, Dump, Fork, Cost, ListTasks, Memories, Model:
		return a.perform(action, c.arg)
	}
	a.said = fmt.Sprintf("/%s is no command; /help lists them", plain.Text(c.name))
	return nil
}

// think shows or folds the reasoning of the last answer that has one.
func (a *App) think() {
	for i := len(a.t.Items) - 1; i >= a.hidden; i-- {
		if it := a.t.Items[i]; it.Kind == Reply && it.Thinking != "" {
			it.Unfolded = !it.Unfolded
			return
		}
	}
	a.said = "no reasoning to show"
}
