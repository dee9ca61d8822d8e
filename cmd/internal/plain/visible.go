package plain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible is s with what a terminal would act on, and what turns the direction of writing or is not
// seen, written out as in JSON: ESC is \u001b. Line feeds and tabs stay, and so does all that can be
// seen; bytes that are no UTF-8 become U+FFFD. Within a string of JSON it means the same as before.
func Visible(s string) string {
	if seen(s) {
		return s
	}
	return string(AppendVisible(make([]byte, 0, len(s)+16), []byte(s)))
}

// AppendVisible appends the Visible form of p to dst.
func AppendVisible(dst, p []byte) []byte {
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		switch {
		case r == '\r' && n < len(p) && p[n] == '\n': // a line end of another system
		case Hidden(r):
			for _, unit := range utf16.Encode([]rune{r}) {
				dst = fmt.Appendf(dst, `\u%04x`, unit)
			}
		default:
			dst = utf8.AppendRune(dst, r)
		}
		p = p[n:]
	}
	return dst
}

// Hidden reports whether r is a control character other than line feed and tab, turns the direction of
// writing, or is not seen at all. Joiners and the choices of looks, which scripts and emoji need, are
// none.
func Hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0, Turns(r):
		return true
	case r == 0xad, r == 0x115f, r == 0x1160, r == 0x180e, r == 0x200b, r == 0x2028, r == 0x2029, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0x2060 && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// seen reports whether s is its own Visible form.
func seen(s string) bool {
	return harmless(s) || utf8.ValidString(s) && !slices.ContainsFunc([]rune(s), Hidden) && !strings.Contains(s, "\r\n")
}

// AppendPainted is AppendVisible but for colours, which stay: color is how long the one is that a text begins
// with, 0 for none.
func AppendPainted(dst, p []byte, color func([]byte) int) []byte {
	for from := 0; ; {
		at := bytes.IndexByte(p[from:], 0x1b)
		if at < 0 {
			return AppendVisible(dst, p)
		}
		at += from
		n := color(p[at:])
		if from = at + 1; n > 0 {
			dst = append(AppendVisible(dst, p[:at]), p[at:at+n]...)
			p, from = p[at+n:], 0
		}
	}
}

// Painted is Visible for a screen that was drawn: colours stay.
func Painted(s string) string {
	return string(AppendPainted(make([]byte, 0, len(s)), []byte(s), colorLength))
}

// colorLength is how long the colour is that s begins with, 0 for none: ESC [ numbers m.
func colorLength(s []byte) int {
	if len(s) < 3 || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case (c < '0' || c > '9') && c != ';' && c != ':':
			return 0
		}
	}
	return 0
}
