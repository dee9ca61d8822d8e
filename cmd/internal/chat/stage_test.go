package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"go.uber.org/goleak"

	"wf/cmd/internal/chat"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// room is a session that the test plays the other side of.
type room struct {
	mu      sync.Mutex
	events  []protocol.WireEvent
	follow  func(chat.Update) // of the connection, once there is one
	joined  chan struct{}
	info    chat.Info
	said    chan string
	command func(chat.Command) (chat.Outcome, error)
	pages   int
}

func newRoom() *room {
	return &room{joined: make(chan struct{}, 8), said: make(chan string, 64), info: chat.Info{Run: "RUN1", Title: "talk", Window: 32000}}
}

func (r *room) Info() chat.Info { return r.info }

func (r *room) Follow(ctx context.Context, from protocol.Seq, on func(chat.Update)) error {
	r.mu.Lock()
	for i := range r.events {
		if r.events[i].Seq > from {
			on(chat.Update{Event: &r.events[i]})
		}
	}
	r.follow = on
	r.mu.Unlock()
	on(chat.Update{Live: true})
	r.joined <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (r *room) Tip(context.Context) (protocol.Seq, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return protocol.Seq(len(r.events)), nil
}

func (r *room) Page(_ context.Context, before protocol.Seq, n int) ([]protocol.WireEvent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages++
	end := int(before) - 1
	return slices.Clone(r.events[max(0, end-n):end]), nil
}

func (r *room) Say(_ context.Context, step, text string) error {
	r.said <- step + ": " + text
	return nil
}

func (r *room) Choose(_ context.Context, step, value string) error {
	r.said <- step + "=" + value
	return nil
}

func (r *room) Command(_ context.Context, c chat.Command) (chat.Outcome, error) {
	if r.command != nil {
		return r.command(c)
	}
	r.said <- "/" + string(c.Action) + " " + c.Arg
	return chat.Outcome{}, nil
}

// happen appends an event and tells who follows.
func (r *room) happen(step string, typ protocol.EventType, data map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	e := protocol.WireEvent{Seq: protocol.Seq(len(r.events) + 1), Type: typ, Data: raw}
	if step != "" {
		e.Step = &step
	}
	r.events = append(r.events, e)
	if r.follow != nil {
		r.follow(chat.Update{Event: &e})
	}
}

func (r *room) live(step, kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow(chat.Update{Delta: &protocol.Frame{Type: protocol.FrameDelta, Step: step, Kind: kind, Text: text}})
}

// screen is a terminal with the chat on it.
type screen struct {
	t     *testing.T
	term  vt10x.Terminal
	drawn chan struct{}
	pty   *os.File
	prog  *tea.Program
	app   *chat.App
	ended chan error
}

// emulate draws what comes out of the terminal until it closes.
func (s *screen) emulate() {
	b := make([]byte, 32<<10)
	for {
		n, err := s.pty.Read(b)
		if err != nil {
			return
		}
		if _, err := s.term.Write(b[:n]); err != nil {
			return
		}
		select {
		case s.drawn <- struct{}{}:
		default:
		}
	}
}

func show(t *testing.T, r *room, width, height int) *screen {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	s := &screen{t: t, term: vt10x.New(vt10x.WithSize(width, height)), drawn: make(chan struct{}, 1), ended: make(chan error, 1), pty: ours}
	s.resize(width, height)
	ctx, cancel := context.WithCancel(context.Background())
	s.app = chat.New(ctx, r, nil)
	s.prog = tea.NewProgram(s.app, tea.WithInput(theirs), tea.WithOutput(theirs), tea.WithColorProfile(colorprofile.ANSI),
		tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.emulate()
	}()
	go func() {
		_, err := s.prog.Run()
		cancel()
		s.ended <- err
	}()
	t.Cleanup(func() {
		s.prog.Quit()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		theirs.Close()
		ours.Close()
		<-read
	})
	select {
	case <-r.joined:
	case <-time.After(20 * time.Second):
		t.Fatalf("nobody follows the session; the screen is\n%s", s)
	}
	return s
}

// String is the screen without the blanks at the ends of its lines.
func (s *screen) String() string {
	s.term.Lock()
	defer s.term.Unlock()
	cols, rows := s.term.Size()
	var b strings.Builder
	for y := range rows {
		var line strings.Builder
		for x := range cols {
			c := s.term.Cell(x, y).Char
			if c == 0 {
				c = ' '
			}
			line.WriteRune(c)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// until waits for the screen to be as wanted.
func (s *screen) until(what string, good func(screen string) bool) string {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if now := s.String(); good(now) {
			return now
		}
		select {
		case <-s.drawn:
		case <-deadline:
			s.t.Fatalf("the screen never shows %s:\n%s", what, s)
		}
	}
}

func (s *screen) shows(text string) string {
	s.t.Helper()
	return s.until(fmt.Sprintf("%q", text), func(now string) bool { return strings.Contains(now, text) })
}

func (s *screen) hides(text string) string {
	s.t.Helper()
	return s.until(fmt.Sprintf("no more %q", text), func(now string) bool { return !strings.Contains(now, text) })
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pty, keys); err != nil {
		s.t.Fatal(err)
	}
}

func (r *room) heard(t *testing.T) string {
	t.Helper()
	select {
	case s := <-r.said:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was said")
		return ""
	}
}

func (s *screen) resize(width, height int) {
	s.t.Helper()
	s.term.Resize(width, height)
	if err := pty.Setsize(s.pty, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)}); err != nil {
		s.t.Fatal(err)
	}
	if s.prog != nil {
		s.prog.Send(tea.WindowSizeMsg{Width: width, Height: height})
	}
}
