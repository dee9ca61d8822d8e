// Package screentest shows a bubbletea model on an emulated terminal, presses its keys, and
// reads its screen. It is for tests alone.
package screentest

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
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

// Screen is a terminal with a program on it.
type Screen struct {
	t     testing.TB
	term  vt10x.Terminal
	drawn chan struct{}
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
	s.prog = tea.NewProgram(model, tea.WithInput(theirs), tea.WithOutput(theirs), tea.WithColorProfile(colorprofile.ANSI),
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
		theirs.Close()
		ours.Close()
		<-read
	})
	return s
}

// emulate draws what comes out of the program until the terminal closes.
func (s *Screen) emulate() {
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

// Ended waits for the program to end by itself.
func (s *Screen) Ended() error {
	s.over = true
	return <-s.ended
}

// String is the screen without the blanks at the ends of its lines.
func (s *Screen) String() string {
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
