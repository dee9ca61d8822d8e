// Package markdown shows the Markdown of models in a terminal, line by line.
//
// # Promise
//
// A text is shown as far as it has come: what is not closed yet is shown as it stands, and no
// line that is complete changes when more follows, but for a table. Every line fits its width.
//
// # Limits
//
// It knows what models write: headings, lists, quotes, code, tables, emphasis, links. Anything
// else is shown as it was written. Colours are those of the terminal's theme.
package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"

	"wf/cmd/internal/plain"
	"wf/protocol/lazy"
)

var (
	heading = lipgloss.NewStyle().Bold(true).Underline(true)
	strong  = lipgloss.NewStyle().Bold(true)
	slanted = lipgloss.NewStyle().Italic(true)
	struck  = lipgloss.NewStyle().Strikethrough(true)
	code    = lipgloss.NewStyle().Foreground(lipgloss.Color("6"))
	dim     = lipgloss.NewStyle().Faint(true)
)

var (
	headings = lazy.Regexp(`^ {0,3}#{1,6} +(.*?)(?: +#+)? *$`)
	items    = lazy.Regexp(`^( *)([-*+]|\d{1,9}[.)]) +(.*)$`)
	fences   = lazy.Regexp("^ *(`{3,}|~{3,})([^`]*)$")
	rules    = lazy.Regexp(`^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	quotes   = lazy.Regexp(`^ {0,3}((?:> ?)+)(.*)$`)
)

// Lines shows a text, which plain.Text made harmless, on lines of at most width cells.
func Lines(text string, width int) []string {
	p := printer{width: max(1, width)}
	p.lines(strings.Split(text, "\n"))
	return p.out
}

type printer struct {
	width int
	out   []string
	fence string // that opened the code which is being shown, "" is none

	looked int // at how many bytes in search of marks; tests hold it against the length of a text
}

func (p *printer) lines(all []string) {
	for i := 0; i < len(all); i++ {
		n, shown := p.table(all[i:])
		if !shown {
			for _, l := range all[i : i+n] {
				p.line(l)
			}
		}
		i += n - 1
	}
}

func (p *printer) line(s string) {
	before := p.fence
	switch p.fence = fence(before, s); {
	case p.fence != before:
		return
	case before != "":
		p.hang("  ", "  ", s, code)
		return
	}
	if m := headings().FindStringSubmatch(s); m != nil {
		p.hang("", "", p.plainly(m[1]), heading)
		return
	}
	if rules().MatchString(s) {
		p.out = append(p.out, dim.Render(strings.Repeat("─", min(p.width, 40))))
		return
	}
	if m := quotes().FindStringSubmatch(s); m != nil {
		bar := strings.Repeat("▎ ", strings.Count(m[1], ">"))
		p.hang(dim.Render(bar), dim.Render(bar), p.plainly(m[2]), slanted)
		return
	}
	if m := items().FindStringSubmatch(s); m != nil {
		mark := m[2]
		if len(mark) == 1 {
			mark = "•"
		}
		p.hang(m[1]+dim.Render(mark)+" ", m[1]+strings.Repeat(" ", plain.Width(mark)+1), p.inline(m[3]), lipgloss.Style{})
		return
	}
	words := strings.TrimLeft(s, " ")
	indent := s[:len(s)-len(words)]
	p.hang(indent, indent, p.inline(words), lipgloss.Style{})
}

// hang wraps a text behind a head, and further lines behind as much; where there is no room for
// that the text has all of it.
func (p *printer) hang(head, further, text string, style lipgloss.Style) {
	room := p.width - plain.Width(head)
	if room < p.width/2 || room < 2 { // a letter may be two cells wide
		head, further, room = "", "", p.width
	}
	for i, l := range plain.Wrap(text, room) {
		if i > 0 {
			head = further
		}
		if l != "" {
			l = style.Render(l)
		}
		p.out = append(p.out, head+l)
	}
}
