// Package plain makes texts of models, tools and people fit to be shown in a terminal.
package plain

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Text is s without what a terminal would act on: no escape sequences, no control characters
// but line feeds, tabs as spaces, no invalid bytes, nothing that turns the direction of
// writing.
func Text(s string) string {
	if harmless(s) {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
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

// Wrap breaks s into lines of at most width cells, at words where it can.
func Wrap(s string, width int) []string {
	width = max(1, width)
	words := ansi.Wrap(s, width, " -/") // leaves a cell too many before some breaks
	return strings.Split(ansi.Hardwrap(words, width, true), "\n")
}
