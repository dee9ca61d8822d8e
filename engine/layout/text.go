package layout

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// plain makes a text one harmless line: control characters and those that turn the direction
// of writing become spaces, runs of spaces one.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' || r == '\u200e' || r == '\u200f' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return strings.Join(strings.Fields(s), " ")
}

// cells is the width of a text in columns of a terminal.
func cells(s string) int { return displaywidth.String(s) }

// shorten cuts a text to at most n columns, with an ellipsis if something is missing.
func shorten(s string, n int) string {
	return displaywidth.TruncateString(s, max(n, 1), "…")
}

// pad fills a text up to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-cells(s))) }
