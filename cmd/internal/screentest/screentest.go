// Package screentest shows a bubbletea model on an emulated terminal, presses its keys, and
// reads its screen. It is for tests alone.
package screentest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"go.uber.org/goleak"
)

// Keys as a terminal sends them.
const (
	Esc      = "\x1b"
	Enter    = "\r"
	PageUp   = "\x1b[5~"
	PageDown = "\x1b[6~"
	Up       = "\x1b[A"
	Down     = "\x1b[B"
	End      = "\x1b[F"
	Tab      = "\t"
	CtrlC    = "\x03"
)

// LeftBehind is for goleak: bubbletea leaves the reader of keys that nobody took when a program
// ended, for as long as the process is there.
var LeftBehind = goleak.IgnoreAnyFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).sendEvents")

// patience is how long a screen may take to be as wanted. It is no measure: a test that meets
// it has failed.
const patience = 20 * time.Second

// Screen is a terminal with a program on it. It shows whole frames only: it tells the program
// that it knows synchronized output (mode 2026), and the program says where a frame ends.
type Screen struct {
	t     testing.TB
	term  vt10x.Terminal
	drawn chan struct{} // a frame has come
	mu    sync.Mutex
	frame string
	pty   *os.File
	prog  *tea.Program
	ended chan error
	over  bool
}

// Show runs a model until the test ends, or it does.
func Show(t testing.TB, model tea.Model, width, height int) *Screen {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	s := &Screen{t: t, term: vt10x.New(vt10x.WithSize(width, height)), drawn: make(chan struct{}, 1), ended: make(chan error, 1), pty: ours}
	s.Resize(width, height)
	out := &output{File: theirs}
	s.prog = tea.NewProgram(synchronized{model}, tea.WithInput(theirs), tea.WithOutput(out), tea.WithColorProfile(colorprofile.ANSI),
		tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.emulate()
	}()
	go func() {
		_, err := s.prog.Run()
		s.ended <- err
	}()
	t.Cleanup(func() {
		if !s.over {
			s.prog.Quit()
			if err := s.Ended(); err != nil {
				t.Error(err)
			}
		}
		out.Close()
		ours.Close()
		<-read
	})
	return s
}

// output is the terminal that a program draws on. A program asks for its size in
// a goroutine that may outlive it.
type output struct {
	*os.File
	mu     sync.Mutex
	closed bool
}

func (o *output) Fd() uintptr {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ^uintptr(0)
	}
	return o.File.Fd()
}

func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.File.Close()
}

// emulate draws what comes out of the program until the terminal closes.
func (s *Screen) emulate() {
	var out []byte
	b := make([]byte, 32<<10)
	for {
		n, err := s.pty.Read(b)
		if err != nil {
			return
		}
		if out, err = s.draw(append(out, b[:n]...)); err != nil {
			return
		}
	}
}

// Synchronized output, as terminals and programs tell each other of it.
const (
	syncMode  = "\x1b[?2026"
	syncAsked = "$p"
	syncKnown = syncMode + ";2$y"
	syncBegin = "h"
	syncEnd   = "l"
)

// draw takes what came, and gives back the beginning of what has not come whole.
func (s *Screen) draw(out []byte) (rest []byte, err error) {
	for {
		i := bytes.Index(out, []byte(syncMode))
		if i < 0 {
			for i = max(0, len(out)-len(syncMode)); i > 0 && !utf8.RuneStart(out[i]); i-- { // no half character
			}
			_, err := s.term.Write(out[:i])
			return out[i:], err
		}
		said := out[i+len(syncMode):]
		if len(said) < len(syncAsked) && !bytes.HasPrefix(said, []byte(syncBegin)) && !bytes.HasPrefix(said, []byte(syncEnd)) {
			return out, nil
		}
		if _, err := s.term.Write(out[:i]); err != nil {
			return nil, err
		}
		switch {
		case bytes.HasPrefix(said, []byte(syncEnd)):
			s.show()
		case bytes.HasPrefix(said, []byte(syncAsked)):
			if _, err := io.WriteString(s.pty, syncKnown); err != nil {
				return nil, err
			}
			out = said[len(syncAsked):]
			continue
		}
		out = said[len(syncEnd):]
	}
}

// synchronized has a whole frame drawn as soon as a program knows that it may end frames.
type synchronized struct{ tea.Model }

func (m synchronized) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := m.Model.Update(msg)
	if x, ok := msg.(tea.ModeReportMsg); ok && x.Mode == ansi.ModeSynchronizedOutput {
		cmd = tea.Batch(cmd, tea.ClearScreen)
	}
	return synchronized{next}, cmd
}

// Ended waits for the program to end by itself.
func (s *Screen) Ended() error {
	s.over = true
	return <-s.ended
}

// String is the newest frame without the blanks at the ends of its lines.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frame
}

// show takes the frame that is on the terminal.
func (s *Screen) show() {
	frame := s.lines()
	s.mu.Lock()
	s.frame = frame
	s.mu.Unlock()
	select {
	case s.drawn <- struct{}{}:
	default:
	}
}

func (s *Screen) lines() string {
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

// Until waits for the screen to be as wanted, and gives it.
func (s *Screen) Until(what string, good func(screen string) bool) string {
	s.t.Helper()
	deadline := time.After(patience)
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

// Shows waits for a text to be there.
func (s *Screen) Shows(text string) string {
	s.t.Helper()
	return s.Until(fmt.Sprintf("%q", text), func(now string) bool { return strings.Contains(now, text) })
}

// Hides waits for a text to be gone.
func (s *Screen) Hides(text string) string {
	s.t.Helper()
	return s.Until(fmt.Sprintf("no more %q", text), func(now string) bool { return !strings.Contains(now, text) })
}

// Press sends keys.
func (s *Screen) Press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pty, keys); err != nil {
		s.t.Fatal(err)
	}
}

// Resize changes the size of the terminal.
func (s *Screen) Resize(width, height int) {
	s.t.Helper()
	s.term.Resize(width, height)
	if err := pty.Setsize(s.pty, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)}); err != nil {
		s.t.Fatal(err)
	}
	if s.prog != nil {
		s.prog.Send(tea.WindowSizeMsg{Width: width, Height: height})
	}
}
