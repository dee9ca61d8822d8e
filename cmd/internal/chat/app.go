package chat

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/frame"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// App is the screen of a session. It is a bubbletea model; everything that takes time happens
// in commands.
type App struct {
	// Size asks the terminal for its columns and lines; nil is for one that tells of each change.
	Size func() (width, height int)

	ctx     context.Context
	session Session
	info    Info
	feed    *feed
	epoch   int             // grows when the session goes over to another run
	conn    context.Context // of following the run
	stop    context.CancelFunc

	t       Transcript
	past    []TaskPage // tasks that began on older pages
	hidden  int        // items before are cleared from the screen
	loading bool       // an older page is on its way
	owed    int        // lines to scroll up once it is there
	link    string     // what is wrong with the connection, "" is nothing
	left    bool       // no process drives the run
	said    string     // the newest word of a command
	stays   bool       // said is there until the person does something
	ready   bool       // the first page is there
	leaving bool       // Ctrl+C was pressed once

	width, height int
	spin          spin
	scroll        scroll
	prompt        prompt
	pick          int    // of the choices of an open question, 0 is none, 1 the first
	long          string // a line that was not sent at first, for its length
	approval      approval
	complete      completion
	panel         panel  // over all else, nil is none
	going         *way   // back, that is under way; nil is none
	spent         string // what the run cost so far
	asking        bool   // for it
	askAgain      bool   // a call has ended meanwhile
	failed        error  // why it ended, if it ended badly
}

// New makes the screen of a session; history is what the person wrote in earlier ones.
func New(ctx context.Context, s Session, history []string) *App {
	info := s.Info()
	return &App{ctx: ctx, session: s, info: info, feed: newFeed(), width: 80, height: 24, prompt: newPrompt(history), said: info.Word, stays: info.Word != "", t: Transcript{Me: info.Me}}
}

// History is what the person wrote, for the next session.
func (a *App) History() []string { return a.prompt.kept() }

// Err is why the screen ended, nil where the person left it.
func (a *App) Err() error { return a.failed }

// Run is the run that was on the screen last.
func (a *App) Run() protocol.RunID { return a.info.Run }

// Init reads the first page.
func (a *App) Init() tea.Cmd { return open(a.ctx, a.session, a.epoch) }

// Update takes what came in.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := a.update(msg)
	return a, tea.Batch(cmd, a.approve(), a.mention(), a.seek(), a.spin.next(a.running() && a.link == ""))
}

// running reports whether the run goes on by itself.
func (a *App) running() bool { return a.t.Status == protocol.Running && !a.left }

func (a *App) update(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		if a.width == m.Width && a.height == m.Height {
			return nil
		}
		a.width, a.height = m.Width, m.Height
		return frame.Resized()
	case opened:
		return a.opened(m)
	case updates:
		return a.updates(m)
	case earlier:
		return a.earlier(m)
	case gotPaths:
		a.gotPaths(m)
	case gotSpent:
		return a.gotSpent(m)
	case gotRows:
		m.take()
	case gotTasks:
		a.gotTasks(m)
	case ended:
		if m.epoch == a.epoch && m.err != nil && !errors.Is(m.err, context.Canceled) {
			a.link = m.err.Error()
		}
	case outcome:
		return a.outcome(m)
	case wayOn:
		return a.wayOn(m)
	case tick:
		a.spin.turn()
	case settled:
		a.approval.settled = a.approval.settled || m.of == a.approval.of
	case tea.KeyPressMsg:
		return a.key(m)
	case tea.PasteMsg:
		if a.panel == nil {
			a.prompt.paste(m.Content)
		}
	default:
		if a.panel == nil {
			var cmd tea.Cmd
			a.prompt.area, cmd = a.prompt.area.Update(msg)
			return cmd
		}
	}
	return nil
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
	if n := len(m.events); n > 0 {
		a.spin.from(m.events[n-1].Entry.TS)
	}
	ctx, stop := context.WithCancel(a.ctx)
	a.conn, a.stop = ctx, stop
	epoch, feed, session := a.epoch, a.feed, a.session
	follow := func() tea.Msg { return ended{epoch, session.Follow(ctx, m.tip, feed.put)} }
	cmds := []tea.Cmd{follow, feed.next(ctx, epoch), a.spend(), a.size}
	if len(a.t.Tasks) > 0 && a.t.First > 1 {
		cmds = append(cmds, a.readTasks(false, ""))
	}
	return tea.Batch(cmds...)
}

// size is that of the terminal, which may have changed before changes were reported. What bubbletea has for this writes beside its own
// answer to a change.
func (a *App) size() tea.Msg {
	if a.Size == nil {
		return nil
	}
	width, height := a.Size()
	return tea.WindowSizeMsg{Width: width, Height: height}
}

func (a *App) updates(m updates) tea.Cmd {
	if m.epoch != a.epoch {
		return nil
	}
	used := false
	for _, u := range m.list {
		_, usage := u.Data.(protocol.Usage)
		used = used || usage
		switch delta, live := u.Data.(protocol.Delta); {
		case u.Entry != nil:
			was := a.t.Status
			if a.t.Apply(u); was != a.t.Status || u.Entry.Type == protocol.EvResumed {
				a.spin.from(0)
			}
			if u.Entry.Type == protocol.EvWaiting || u.Entry.Type == protocol.EvAnswered {
				a.pick = 0 // it was of another question
			}
			if a.left = false; !a.stays {
				a.said = "" // what was said of a command is old news
			}
		case live:
			a.t.Live(u.Step, delta)
		case u.Reset != nil:
			a.t.Truncate(*u.Reset)
			a.hidden = 0
			a.scroll.follow()
			a.said = fmt.Sprintf("the history changed after event %d", *u.Reset)
		case u.Away != "":
			a.link = "not connected: " + u.Away
		case u.Driven != nil:
			if a.left && *u.Driven {
				a.spin.from(0)
			}
			a.left = !*u.Driven
		default: // connected again, or all was shown
			a.link = ""
		}
	}
	if used {
		return tea.Batch(a.feed.next(a.conn, a.epoch), a.spend())
	}
	return a.feed.next(a.conn, a.epoch)
}

func (a *App) earlier(m earlier) tea.Cmd {
	owed := a.owed
	a.loading, a.owed = false, 0
	switch {
	case m.epoch != a.epoch:
	case m.err != nil:
		a.said = "older events: " + m.err.Error()
	default:
		n, at := len(a.t.Items), a.scroll.fromEnd(a.t.Items)
		a.t.Prepend(m.events)
		if a.hidden > 0 { // cleared meanwhile
			a.hidden += len(a.t.Items) - n
		}
		a.scroll.again(a.t.Items, at)
		if owed > 0 {
			return a.back(owed)
		}
	}
	return nil
}

// saidMax bounds what a command has to say.
const saidMax = 1000

// outcome is how a command of the person went.
type outcome struct {
	epoch  int
	line   string // that was sent, for when it came to nothing
	result Outcome
	err    error
	way    *way // that has ended
}

func (a *App) outcome(m outcome) tea.Cmd {
	if m.way != nil && m.way == a.going {
		a.going = nil
		if m.way.leaves {
			return tea.Quit
		}
	}
	moved, went := errors.AsType[*MovedError](m.err)
	switch {
	case m.epoch != a.epoch:
	case went:
		cmd := a.move()
		a.said, a.stays = plain.Line(plain.Text(moved.Text), saidMax), true
		a.prompt.giveBack(m.line)
		return cmd
	case m.err != nil:
		a.approval = approval{} // keys answer again
		a.said = plain.Line(plain.Text(m.err.Error()), saidMax)
		a.prompt.giveBack(m.line)
	case m.result.Moved:
		cmd := a.move()
		if m.result.Text != "" {
			a.said, a.stays = plain.Line(plain.Text(m.result.Text), saidMax), true
		}
		if a.prompt.area.Length() == 0 {
			a.prompt.paste(m.result.Line)
		} else {
			a.prompt.remember(m.result.Line) // Up brings it
		}
		return cmd
	case m.result.List != nil && a.prompt.area.Length() > 0: // the next Enter is to send that
		a.said = fmt.Sprintf("the list came while you wrote: send or empty the box, then /%s", m.result.List.Do)
	case m.result.List != nil:
		a.panel = newPicker(*m.result.List)
	case m.result.Dialog:
		a.panel = newDialog(m.result.Title, m.result.Text, m.result.Wide)
	default:
		a.said = plain.Line(plain.Text(m.result.Text), saidMax)
	}
	return nil
}

// move goes over to the run that the session is now.
func (a *App) move() tea.Cmd {
	if a.stop != nil {
		a.stop()
	}
	a.epoch++
	a.info = a.session.Info()
	a.t, a.past, a.hidden, a.ready, a.feed = Transcript{Me: a.info.Me}, nil, 0, false, newFeed()
	a.scroll, a.pick, a.link, a.left = scroll{}, 0, "", false
	a.complete = completion{}
	a.spent, a.asking, a.askAgain = "", false, false
	a.said, a.stays = "now run "+string(a.info.Run), false
	return open(a.ctx, a.session, a.epoch)
}
