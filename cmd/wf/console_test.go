package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"
)

// A console is a pty with a program on it. It answers no question that the program may have
// for it, as many terminals do not.
type console struct {
	t     *testing.T
	pty   *os.File
	tty   *os.File
	cmd   *exec.Cmd
	found *unix.Termios // its settings before the program began
	left  *unix.Termios // and after it ended
	read  chan struct{} // closed when all was read

	mu   sync.Mutex
	out  bytes.Buffer
	seen int           // of out, by shows
	more chan struct{} // something came
}

// atTerminal starts a program on a terminal in a directory, which is its home as well.
func atTerminal(t *testing.T, dir string, line ...string) *console {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	p := &console{t: t, pty: ours, tty: theirs, more: make(chan struct{}, 1)}
	p.found, p.read = p.settings(), make(chan struct{})
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Dir = dir
	p.cmd.Env = consoleEnv(dir)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, theirs, theirs
	p.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	go p.listen()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
		theirs.Close()
		<-p.read
		ours.Close()
	})
	return p
}

// consoleEnv is the environment of a program whose home is a directory.
func consoleEnv(dir string) []string {
	return append(os.Environ(), "HOME="+dir, "WF_STORE="+filepath.Join(dir, ".wf"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"USER=ada", "TERM=xterm-256color", "NO_COLOR=1")
}

func (p *console) listen() {
	defer close(p.read)
	b := make([]byte, 4096)
	for {
		n, err := p.pty.Read(b)
		p.mu.Lock()
		p.out.Write(b[:n])
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// settings are those of the line discipline: echo, signals, whole lines.
func (p *console) settings() *unix.Termios {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.tty.Fd()), readSettings)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// shows waits for a text behind what was waited for before, and gives all between.
func (p *console) shows(text string) string {
	p.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		p.mu.Lock()
		now := p.out.String()[p.seen:]
		if i := strings.Index(now, text); i >= 0 {
			p.seen += i + len(text)
			p.mu.Unlock()
			return now[:i+len(text)]
		}
		p.mu.Unlock()
		select {
		case <-p.more:
		case <-deadline:
			p.t.Fatalf("the terminal never shows %q:\n%s", text, now)
		}
	}
}

// screen is what the terminal shows, without the blanks at the ends of its lines.
func (p *console) screen() string { return p.screenOf(0, 100, 24) }

// screenOf is what of the output from a place on a terminal of that size shows.
func (p *console) screenOf(from, width, height int) string {
	term := vt10x.New(vt10x.WithSize(width, height))
	if _, err := term.Write(private.ReplaceAll([]byte(p.all()[from:]), nil)); err != nil {
		p.t.Fatal(err)
	}
	var lines []string
	for l := range strings.SplitSeq(term.String(), "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// private are requests that the emulated terminal takes for others: it moves the cursor at CSI ? u.
var private = regexp.MustCompile(`\x1b\[[<=>?][0-9;]*\$?[a-zA-Z]`)

// onScreen waits for a text to be there on the terminal, wherever the cursor went meanwhile.
func (p *console) onScreen(text string) {
	p.t.Helper()
	p.until(strconv.Quote(text), func() bool { return strings.Contains(p.screen(), text) })
}

// until waits for the terminal to be as wanted.
func (p *console) until(what string, good func() bool) {
	p.t.Helper()
	deadline := time.After(30 * time.Second)
	for !good() {
		select {
		case <-p.more:
		case <-deadline:
			p.t.Fatalf("the terminal never shows %s:\n%s", what, p.screen())
		}
	}
}

func (p *console) press(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.pty, keys); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the program to end and for all that it showed, and gives its exit status.
func (p *console) ends() int {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	p.left = p.settings()
	p.tty.Close() // the last one who has it open: reading ends behind what was written
	<-p.read
	return p.cmd.ProcessState.ExitCode()
}

// all is everything that was shown.
func (p *console) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}
