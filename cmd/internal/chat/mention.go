package chat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Files are the files of the workspace in which an agent works.
type Files interface {
	// Paths lists files, with slashes, those near the top first. more says that there are more than were listed.
	Paths(ctx context.Context) (paths []string, more bool, err error)
	// Read reads the first n bytes of a file, and says how many it has. What is no regular file, or not there, is
	// an error wrapping fs.ErrNotExist; any other, such as for what lies outside, says what is wrong.
	Read(path string, n int) (text []byte, size int64, err error)
}

// ErrElsewhere says why no file of a workspace can be offered.
var ErrElsewhere = errors.New("no files are offered: those of this run are where its agent works, not here. A name stays a word, by which the agent can find the file")

// How many bytes of a file that a message names are added to it, and how long the message is then: what an edge brings to an
// agent has a bound.
const (
	attachMax    = 16 << 10
	attachAllMax = protocol.EdgePromptMax - 2<<10
)

// mentions are the paths that a text names: @path or @"a path", behind a blank or at the beginning.
func mentions(text string) (out []string) {
	for i := 0; i < len(text); {
		at := strings.IndexByte(text[i:], '@')
		if at < 0 {
			break
		}
		begin := i + at
		i = begin + 1
		if before, _ := utf8.DecodeLastRuneInString(text[:begin]); begin > 0 && !unicode.IsSpace(before) && !strings.ContainsRune(`([{"'`, before) {
			continue
		}
		rest := text[i:]
		name := rest
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			name, _, _ = strings.Cut(quoted, `"`)
		} else if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
			name = rest[:end]
		}
		if i += len(name); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// attached is the text of the files that a line names, to follow it, of about room bytes; "" where it names none. A name that is no
// file stays what it is: a text.
func attached(files Files, line string, room int) (string, error) {
	const closing = ".,;:!?)]}'\"" // the end of a sentence is none of a name
	var b strings.Builder
	there := map[string]bool{}
	for _, name := range mentions(line) {
		for name != "" {
			part, err := attach(files, name, room-b.Len())
			if err == nil {
				if !there[name] {
					b.WriteString(part)
				}
				there[name] = true
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			shorter := strings.TrimRight(name, closing)
			if shorter == name {
				break
			}
			name = name[:max(len(shorter), len(name)-1)]
		}
	}
	return b.String(), nil
}

// attach is a file as it is added to a message: its text, with what was left out.
func attach(files Files, name string, room int) (string, error) {
	text, size, err := files.Read(name, attachMax)
	if err != nil {
		return "", err
	}
	whole := int64(len(text)) == size
	if !whole { // no half line, and no half letter
		if end := strings.LastIndexByte(string(text), '\n'); end >= 0 {
			text = text[:end+1]
		}
		for n := 0; n < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text); n++ {
			text = text[:len(text)-1]
		}
	}
	head := "\n\nThe file " + name
	noRoom := fmt.Sprintf("%s (%d bytes) is left out: it has no room in this message. Read it with your tools.", head, size)
	switch {
	case !utf8.Valid(text) || strings.ContainsRune(string(text), 0):
		return fmt.Sprintf("%s is no text (%d bytes) and is left out.", head, size), nil
	case size == 0:
		return head + " is empty.", nil
	case len(text) > room:
		return noRoom, nil
	case whole:
		head += fmt.Sprintf(" (%d bytes):", size)
	default:
		n := strings.Count(string(text), "\n")
		head += fmt.Sprintf(" (its first %d lines, %d of %d bytes; what follows line %d is left out, read it with your tools):", n, len(text), size, n)
	}
	fence := "```"
	for strings.Contains(string(text), fence) {
		fence += "`"
	}
	part := head + "\n\n" + fence + strings.TrimPrefix(path.Ext(name), ".") + "\n" + strings.TrimSuffix(string(text), "\n") + "\n" + fence + "\nEnd of " + name + "."
	if len(part) > room { // a fence may be as long as the text
		return noRoom, nil
	}
	return part, nil
}

// completion is what a mention that is being written may become.
type completion struct {
	paths   []string
	more    bool // there are more than were listed
	reading bool
	failed  error
	word    string // that is being written, behind the @
	shown   []string
	at      int // in shown
	closed  bool
}

// completeMax is how many paths are offered at a time.
const completeMax = 6

// gotPaths are the paths of the workspace.
type gotPaths struct {
	epoch int
	paths []string
	more  bool
	err   error
}

// mention looks whether a mention is being written, and offers paths for it. They are read anew for each mention.
func (a *App) mention() tea.Cmd {
	c := &a.complete
	word, ok := a.prompt.mentioned()
	switch {
	case !ok || a.panel != nil:
		*c = completion{paths: c.paths, more: c.more, reading: c.reading}
		return nil
	case c.word == "@"+word:
		return nil
	}
	begins := c.word == ""
	c.word, c.closed = "@"+word, c.closed && !begins
	c.find()
	if !begins || c.reading {
		return nil
	}
	c.reading = true
	epoch, ctx, session := a.epoch, a.ctx, a.session
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		paths, more, err := session.Paths(ctx)
		return gotPaths{epoch, paths, more, err}
	}
}

func (a *App) gotPaths(m gotPaths) {
	if m.epoch != a.epoch {
		return
	}
	c := &a.complete
	c.reading, c.paths, c.more, c.failed = false, m.paths, m.more, m.err
	if c.word != "" {
		c.find()
	}
}

// find chooses the paths that fit the word, the best first: those whose last part begins like it, then those that begin
// like it, then those that hold it.
func (c *completion) find() {
	word := strings.ToLower(strings.TrimPrefix(c.word, "@"))
	var ranks [3][]string
	for _, p := range c.paths {
		low := strings.ToLower(p)
		rank := 2
		switch {
		case strings.HasPrefix(path.Base(low), word):
			rank = 0
		case strings.HasPrefix(low, word):
			rank = 1
		case !strings.Contains(low, word):
			continue
		}
		if len(ranks[rank]) < completeMax {
			ranks[rank] = append(ranks[rank], p)
		}
	}
	c.shown = slices.Concat(ranks[0], ranks[1], ranks[2])
	c.shown, c.at = c.shown[:min(len(c.shown), completeMax)], 0
}

// open reports whether paths are offered.
func (c *completion) open() bool { return c.word != "" && !c.closed && len(c.shown) > 0 }

// completeKey is a key while a mention is being written. It reports whether it was for that.
func (a *App) completeKey(name string) bool {
	c := &a.complete
	if !c.open() {
		return false
	}
	switch name {
	case "up":
		c.at = (c.at + len(c.shown) - 1) % len(c.shown)
	case "down":
		c.at = (c.at + 1) % len(c.shown)
	case "tab":
		a.prompt.complete(c.shown[c.at])
	case "esc":
		c.closed = true
	default:
		return false
	}
	return true
}

// completeLines are the paths that are offered.
func (a *App) completeLines(width int) (out []string) {
	c := &a.complete
	if c.word == "" || c.closed {
		return nil
	}
	for i, p := range c.shown {
		line := plain.Cut("  "+plain.Line(plain.Text(p), 300), width, "…")
		if style := styleDim; i == c.at {
			line = styleChosen.Render(line)
		} else {
			line = style.Render(line)
		}
		out = append(out, line)
	}
	switch {
	case errors.Is(c.failed, ErrElsewhere):
		out = append(out, hang("  ", 2, c.failed.Error(), width, styleDim.Render)...)
	case c.failed != nil:
		out = append(out, hang("  ", 2, "files: "+plain.Line(plain.Text(c.failed.Error()), 300), width, styleFailed.Render)...)
	case c.reading && len(c.paths) == 0:
		out = append(out, styleDim.Render("  reading the files…"))
	case c.more && len(c.shown) < completeMax:
		out = append(out, styleDim.Render(plain.Cut(fmt.Sprintf("  of the first %d files; a whole path works for all", len(c.paths)), width, "…")))
	}
	return out
}

// mentioned is the mention before the cursor that is being written, without its @.
func (p *prompt) mentioned() (word string, ok bool) {
	before, _ := p.around()
	at := strings.LastIndexByte(before, '@')
	if at < 0 {
		return "", false
	}
	if last, _ := utf8.DecodeLastRuneInString(before[:at]); at > 0 && !unicode.IsSpace(last) && !strings.ContainsRune(`([{"'`, last) {
		return "", false
	}
	word, quoted := strings.CutPrefix(before[at+1:], `"`)
	if quoted {
		return word, !strings.Contains(word, `"`)
	}
	return word, !strings.ContainsFunc(word, unicode.IsSpace)
}

// around is the line of the cursor before and behind it.
func (p *prompt) around() (before, behind string) {
	lines := strings.Split(p.area.Value(), "\n")
	line := []rune(lines[min(p.area.Line(), len(lines)-1)])
	at := min(p.area.Column(), len(line))
	return string(line[:at]), string(line[at:])
}

// complete puts a path in the place of the mention before the cursor.
func (p *prompt) complete(name string) {
	lines := strings.Split(p.area.Value(), "\n")
	row := min(p.area.Line(), len(lines)-1)
	before, behind := p.around()
	before = before[:strings.LastIndexByte(before, '@')+1]
	if strings.ContainsFunc(name, unicode.IsSpace) {
		name = `"` + name + `"`
	}
	before += name + " "
	lines[row] = before + strings.TrimPrefix(behind, " ")
	p.area.SetValue(strings.Join(lines, "\n"))
	p.area.MoveToBegin()
	for n := p.area.Length(); p.area.Line() < row && n >= 0; n-- {
		p.area.CursorDown()
	}
	p.area.SetCursorColumn(utf8.RuneCountInString(before))
}
