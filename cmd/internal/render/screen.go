package render

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"

	"wf/cmd/internal/plain"
	"wf/protocol/lazy"
)

// A Screen is an output stream with what is known about it. What is written to it is a text: nothing of
// it acts on a terminal, from whatever source and in whatever way it came, but the colours of a paint where
// the stream has colours. All else that would act is written out, as in JSON. Bytes that are no text go
// to Writer.
type Screen struct {
	io.Writer
	TTY   bool
	Paint     // its colours
	Width int // columns; 0 is unknown

	mu   sync.Mutex
	held []byte // the beginning of a letter, at the end of what was written
	hash int    // so many # are at its end
}

// NewScreen is the screen of a stream of the process; colours are off.
func NewScreen(f *os.File) *Screen {
	s := &Screen{Writer: f, TTY: term.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"}
	if s.TTY {
		if w, _, err := term.GetSize(f.Fd()); err == nil {
			s.Width = w
		}
	}
	return s
}

// Size is how many columns and rows a terminal has now.
func (s *Screen) Size() (width, height int) {
	width, height = s.Width, 24
	if f, ok := s.Writer.(*os.File); ok {
		if w, h, err := term.GetSize(f.Fd()); err == nil {
			width, height = w, h
		}
	}
	if width <= 0 {
		width = 80
	}
	return width, height
}

// Wrap breaks a text at words, so that a terminal breaks none of them; what follows the first line is set in. Elsewhere
// it only sets in.
func (s *Screen) Wrap(text, indent string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if s.TTY {
		width, _ := s.Size()
		var all []string
		for _, l := range lines {
			all = append(all, plain.Wrap(l, max(1, width-1-len(indent)))...)
		}
		lines = all
	}
	return strings.Join(lines, "\n"+indent)
}

// Row is parts on a line, with sep between them; on a terminal on as many as they need, each part whole.
func (s *Screen) Row(indent, sep string, parts []string) string {
	width, _ := s.Size()
	var lines []string
	for _, part := range parts {
		if n := len(lines); n > 0 && (!s.TTY || plain.Width(indent+lines[n-1]+sep+part) < width) {
			lines[n-1] += sep + part
			continue
		}
		lines = append(lines, part)
	}
	return strings.Join(lines, "\n"+indent)
}

// Write shows a text.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.Writer.Write(s.shown(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// redraw goes back over so many lines, wipes them, and shows a text there.
func (s *Screen) redraw(lines int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	if lines > 0 {
		b = fmt.Appendf(b, "\x1b[%dA\r\x1b[J", lines)
	}
	_, _ = s.Writer.Write(s.shown(b, []byte(text))) // progress: what is lost is drawn again
}

// ownColor is what a paint, and a diagnostic, begin and end with.
var ownColor = lazy.Regexp(`^\x1b\[(?:0|1|2|3[0-9]|4|1;3[0-9])m`)

// shown appends a text to dst as it is shown. What may go on in the next one is held.
func (s *Screen) shown(dst, p []byte) []byte {
	if len(s.held) > 0 {
		p = append(s.held, p...)
		s.held = nil
	}
	if n := unfinished(p); n > 0 {
		s.held = append([]byte(nil), p[len(p)-n:]...)
		p = p[:len(p)-n]
	}
	if !s.Color {
		dst = plain.AppendVisible(dst, p)
	} else {
		dst = plain.AppendPainted(dst, p, func(p []byte) int { return len(ownColor().Find(p)) })
	}
	if !InActions() {
		return dst
	}
	return s.unmarked(dst)
}

// unmarked is a text in which GitHub finds no ##[, which begins a command wherever it is in a line. Within a string of JSON it means the
// same as before.
func (s *Screen) unmarked(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, c := range text {
		if c == '[' && s.hash >= 2 {
			out = append(out, `\u005b`...)
		} else {
			out = append(out, c)
		}
		if s.hash++; c != '#' {
			s.hash = 0
		}
	}
	return out
}

// unfinished is how many bytes at the end are the beginning of a letter.
func unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// A Paint colours text for one stream, or leaves it alone.
type Paint struct{ Color bool }

func (p Paint) sgr(code, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold is a text in bold.
func (p Paint) Bold(s string) string { return p.sgr("1", s) }

// Dim is a text dimmed.
func (p Paint) Dim(s string) string { return p.sgr("2", s) }

// Red is a text in red, as failures.
func (p Paint) Red(s string) string { return p.sgr("31", s) }

// Green is a text in green, as what succeeded.
func (p Paint) Green(s string) string { return p.sgr("32", s) }

// Yellow is a text in yellow, as what waits or warns.
func (p Paint) Yellow(s string) string { return p.sgr("33", s) }

// Cyan is a text in cyan, as names and what goes on.
func (p Paint) Cyan(s string) string { return p.sgr("36", s) }

// signs are the looks of where a run or a step stands, by State.Word or the status of a step; all others go on.
var signs = map[string]struct {
	sign  string
	paint func(Paint, string) string
}{
	"queued": {"○", Paint.Yellow},
	"done":   {"✓", Paint.Green}, "ok": {"✓", Paint.Green}, "failed": {"✗", Paint.Red}, "waiting": {"⏸", Paint.Yellow},
	"suspended": {"!", Paint.Yellow}, redItem: {"!", Paint.Yellow}, "parked": {"!", Paint.Yellow}, "retrying": {"!", Paint.Yellow}, "interrupted": {"!", Paint.Yellow},
	"not started": {"○", Paint.Yellow}, "answered": {"○", Paint.Yellow}, "cancelled": {"–", Paint.Dim}, "skipped": {"–", Paint.Dim},
}

// sign stands in front of a run or a step.
func (p Paint) sign(stands string) string {
	if x, ok := signs[stands]; ok {
		return x.paint(p, x.sign)
	}
	return p.Cyan("●")
}
