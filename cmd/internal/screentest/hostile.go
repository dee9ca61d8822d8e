package screentest

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"wf/cmd/internal/plain"
)

// Hostile are texts that act on a terminal, or on the eyes of a reader.
var Hostile = []string{
	"\x1b]52;c;cHduZWQ=\x07", "\x1b]0;owned\x1b\\", "\x1b[2J\x1b[H", "\x1b[8mhidden", "\x1bP+q\x1b\\", "\x1bc", "\u009b2J", "\u009d0;owned\u009c", "\x9b2J", "\x90",
	"\u202egnp.exe", "\u2066\u2069", "\u200b\u2063", "\ufeff", "\U000e0041", "\b\b\b", "\r\x00", "\x7f", "two\nlines\r\n", "\x1b[31", "caf\xc3",
}

// Acts names the first thing in what was printed that acts on a terminal; the colours of wf do not.
func Acts(printed string, color bool) string {
	if color {
		printed = regexp.MustCompile(`\x1b\[(0|1|2|4|3\d|1;3\d)m`).ReplaceAllString(printed, "")
	}
	if !utf8.ValidString(printed) {
		return fmt.Sprintf("invalid UTF-8 in %q", printed)
	}
	for i, r := range printed {
		if plain.Hidden(r) {
			return fmt.Sprintf("%U in …%q", r, printed[max(0, i-60):i+utf8.RuneLen(r)])
		}
	}
	return ""
}
