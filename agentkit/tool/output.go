package tool

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"wf/roles"
)

// ends keeps the beginning and the end of a stream in bounded memory.
type ends struct {
	max  int    // characters of the text
	keep int    // bytes of head, and of tail
	head []byte // first keep bytes
	tail []byte // last keep bytes, up to twice as many between trims
	gone int64  // bytes between them
}

// newEnds keeps four bytes for each character, so that one is never missing for want of bytes.
func newEnds(max int) *ends { return &ends{max: max, keep: 4 * max} }

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	if room := e.keep - len(e.head); room > 0 {
		take := min(room, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	for len(p) > 0 {
		take := min(len(p), e.keep)
		e.tail, p = append(e.tail, p[:take]...), p[take:]
		if over := len(e.tail) - e.keep; over > 0 {
			e.gone += int64(over)
			e.tail = append(e.tail[:0], e.tail[over:]...)
		}
	}
	return n, nil
}

// text is the stream cut to max characters, secrets hidden first: two thirds from its
// beginning, one from its end, where errors tend to stand.
func (e *ends) text(clean func(string) string) string {
	if e.gone == 0 {
		s := clean(plain(append(bytes.Clone(e.head), e.tail...)))
		runes := utf8.RuneCountInString(s)
		if runes <= e.max {
			return s
		}
		return e.join(s, s, int64(runes-e.max), "characters")
	}
	head, tail := clean(plain(e.head)), clean(plain(e.tail))
	return e.join(head, tail, e.gone+int64(len(e.head)+len(e.tail)-e.max), "bytes")
}

func (e *ends) join(head, tail string, missing int64, unit string) string {
	last := e.max / 3
	return fmt.Sprintf("%s\n…[%d %s left out]…\n%s", firstRunes(head, e.max-last), missing, unit, lastRunes(tail, last))
}

// plain is output as text: invalid UTF-8 replaced, CRLF as LF, no NUL bytes.
func plain(b []byte) string {
	s := strings.ToValidUTF8(string(b), "�")
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\x00", "")
}

func firstRunes(s string, n int) string {
	for at := range s {
		if n == 0 {
			return s[:at]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// watcher shows output to live watchers too, as text and secrets hidden: it holds back what may
// yet become one, such as the lines of a private key, and shows whole lines where there are any.
type watcher struct {
	at    Workspace
	kind  string
	to    io.Writer
	clean *roles.Cleaner
	line  string // clean already, not shown yet
}

func newWatcher(at Workspace, kind string, to io.Writer) *watcher {
	hide := new(roles.Redactor)
	if at.Redact != nil {
		hide = at.Redact()
	}
	return &watcher{at: at, kind: kind, to: to, clean: roles.NewCleaner(hide)}
}

// lineMax is the longest line that is shown in one piece.
const lineMax = 8 << 10

func (w *watcher) Write(p []byte) (int, error) {
	if w.at.Watch != nil {
		w.line += w.clean.Text(p, false)
		end := strings.LastIndexByte(w.line, '\n') + 1
		if end == 0 && len(w.line) > lineMax {
			end = len(w.line)
		}
		w.show(end)
	}
	return w.to.Write(p)
}

// end shows what was held back; the stream has ended.
func (w *watcher) end() {
	if w.at.Watch != nil {
		w.line += w.clean.Text(nil, true)
		w.show(len(w.line))
	}
}

func (w *watcher) show(n int) {
	if n > 0 {
		w.at.Watch(w.kind, w.line[:n])
		w.line = w.line[n:]
	}
}
