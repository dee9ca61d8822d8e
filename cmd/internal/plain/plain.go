// Package plain makes texts of models, tools and people fit to be shown in a terminal, and
// measures them as terminals do.
//
// # Promise
//
// Nothing of a Text acts on a terminal, and all terminals agree on how many cells it fills: an
// emoji that is joined of several is shown as these, since some count the parts and some do not.
//
// # Not here
//
// Right-to-left text is left in the order it is read in; turning it is up to the terminal.
package plain

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Text is s without what a terminal would act on: no escape sequences, no control characters
// but line feeds, tabs as spaces, no invalid bytes, nothing that turns the direction of
// writing or is not seen, and no pile of marks on one letter.
func Text(s string) string {
	if harmless(s) {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	last, marks := rune(0), 0
	return strings.Map(func(r rune) rune {
		if r >= ' ' && r < 0x7f { // most are
			last, marks = r, 0
			return r
		}
		marks++
		switch {
		case r == '\r', r == '\u2028', r == '\u2029':
			r = '\n'
		case Hidden(r), joins(last, r):
			return -1
		case unicode.In(r, unicode.Mn, unicode.Me) && marks > marksMax:
			return -1
		}
		if !unicode.In(r, unicode.Mn, unicode.Me) {
			last, marks = r, 0
		}
		return r
	}, s)
}

// marksMax is how many marks a letter may carry. Scripts need three at most.
const marksMax = 4

// Turns reports whether r changes the direction of writing without being seen.
func Turns(r rune) bool {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c, r == 0xfeff:
		return true
	}
	return false
}

// joins reports whether r makes one sign of an emoji and its neighbours: a joiner, a choice of
// its looks, the colour of a skin. Joiners between letters stay.
func joins(last, r rune) bool {
	switch {
	case r == 0xfe0f:
		return true
	case r == 0x200d, r >= 0x1f3fb && r <= 0x1f3ff:
		return unicode.Is(unicode.So, last)
	}
	return false
}

// harmless reports whether s is printable ASCII and line feeds.
func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\n' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// Line is s on one line of at most n runes, with … where it was cut.
func Line(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	runes := 0
	for i := range s {
		if runes == n {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}

// Width is how many cells s fills on one line. s may hold colours, as in all functions below.
func Width(s string) int { return ansi.StringWidthWc(s) }

// Cut is s on at most width cells; where something is missing it ends with end.
func Cut(s string, width int, end string) string {
	if Width(s) <= width {
		return s
	}
	if cut := ansi.TruncateWc(s, width, end); Width(cut) <= width {
		return cut
	}
	if room := width - Width(end); room >= 0 {
		head, _ := split(ansi.Strip(s), room)
		return head + end
	}
	return ""
}

// split cuts plain text letter by letter. Where ansi takes several wide letters for one sign of
// a cell or two, as it does behind some Arabic signs and with parts of Korean syllables, its cuts
// are too long for Width.
func split(s string, width int) (head, rest string) {
	for i, r := range s {
		if width -= Width(string(r)); width < 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// Wrap breaks s into lines of at most width cells, at words where it can. A colour that goes on
// beyond the end of a line ends there and begins again on the next.
func Wrap(s string, width int) []string {
	width = max(1, width)
	words := ansi.WrapWc(s, width, " -/") // leaves a cell too many before some breaks
	var lines []string
	for l := range strings.SplitSeq(ansi.HardwrapWc(words, width, true), "\n") {
		for Width(l) > width {
			head, rest := split(ansi.Strip(l), width)
			if head == "" {
				break // one letter that is wider than a line
			}
			lines, l = append(lines, head), rest
		}
		lines = append(lines, l)
	}
	if strings.IndexByte(s, '\x1b') < 0 {
		return lines
	}
	open := ""
	for i, l := range lines {
		lines[i] = open + l
		if open = lasting(open, l); open != "" {
			lines[i] += ansi.ResetStyle
		}
	}
	return lines
}

// lasting are the colours that are on at the end of a line that began with some.
func lasting(open, line string) string {
	for {
		i := strings.Index(line, "\x1b[")
		if i < 0 {
			return open
		}
		line = line[i:]
		end := strings.IndexByte(line, 'm')
		if end < 0 {
			return open
		}
		if code := line[:end+1]; code == ansi.ResetStyle || code == "\x1b[0m" {
			open = ""
		} else {
			open += code
		}
		line = line[end+1:]
	}
}

// Pad is s with blanks behind it, so that it fills width cells.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }

// Rows is how many rows a text fills in a box of a width that wraps at words, the cursor behind its lines included; most is enough.
func Rows(s string, width, most int) int {
	rows, bytes := 0, 4*width*(most+1) // of a line that fills the box
	for line := range strings.Lines(s + "\n") {
		line = strings.TrimSuffix(line, "\n")
		line = strings.ToValidUTF8(line[:min(len(line), bytes)], "") + "_"
		if rows += 1 + strings.Count(ansi.WrapWc(line, max(1, width), ""), "\n"); rows > most {
			return most
		}
	}
	return rows
}
