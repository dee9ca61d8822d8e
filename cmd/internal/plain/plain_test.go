package plain

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNothingLeftActsOnATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\r\nc\rd":                                   "a    b\nc\nd",
		"\x1b[31mred\x1b[0m \x1b]0;t\x07!":               "red !",
		"bell\a null\x00 del\x7f c1\u009b2J":             "bell null del c12J",
		"\u202eturned\u202c \u200fmarked\u061c \xff":     "turned marked \uFFFD",
		"one\u2028two":                                   "one\ntwo",
		"👩\u200d👩\u200d👧 👍🏽 ❤\ufe0f":                     "👩👩👧 👍 ❤",
		"می\u200cخواهم क्\u200dष":                        "می\u200cخواهم क्\u200dष",
		"e\u0301 Z" + strings.Repeat("\u0337", 90) + "o": "e\u0301 Z" + strings.Repeat("\u0337", 4) + "o",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.SampledFrom([]byte("a\x1b[]m;31\x07\x9b\x00\r\n\té\xff\\P"))).Draw(t, "bytes")
		got := Text(string(b))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Fatalf("%q: %q", b, got)
		}
	})
}

func TestLinesFit(t *testing.T) {
	if got := Pad(Cut("世界世界", 5, "…"), 6); got != "世界… " {
		t.Errorf("%q", got)
	}
	if got := Line(" a\n b  ccc ", 5); got != "a b c…" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s, width := rapid.StringOf(rapid.SampledFrom([]rune("ab -/世👍é\n"))).Draw(t, "text"), rapid.IntRange(2, 12).Draw(t, "width")
		for _, l := range Wrap(s, width) {
			if Width(l) > width {
				t.Fatalf("%q has more than %d cells", l, width)
			}
		}
	})
}

func TestAColourGoesOnBehindABreak(t *testing.T) {
	got := Wrap("a \x1b[1mbold one\x1b[m b", 6)
	want := []string{"a \x1b[1mbold\x1b[m", "\x1b[1mone\x1b[m b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsCutAndWrappedFits(t *testing.T) {
	letters := rapid.SampledFrom([]rune{'a', 'b', ' ', '\u0600', '\u0301', '世', '\u200d', '👩', '\ufe0f', '\U0001F1E6', '\u1100', '\u1161', '\u0e33', '\U000110bd'})
	rapid.Check(t, func(t *rapid.T) {
		s := Text(string(rapid.SliceOf(letters).Draw(t, "s")))
		width := rapid.IntRange(0, 6).Draw(t, "width")
		if cut := Cut(s, width, "…"); Width(cut) > width {
			t.Fatalf("%q was cut to %q: %d cells, want %d", s, cut, Width(cut), width)
		}
		for _, l := range Wrap(s, width+2) {
			if Width(l) > width+2 {
				t.Fatalf("%q was wrapped to %q: %d cells, want %d", s, l, Width(l), width+2)
			}
		}
	})
}

func TestRowsOfABox(t *testing.T) {
	for text, want := range map[string]int{"": 1, "123456789": 1, "1234567890": 2, "a\nb": 2, "a\n": 2, "日本日本日": 2, strings.Repeat("\n", 7): 8, strings.Repeat("\n", 8): 8, strings.Repeat("x", 1<<20): 8} {
		if got := Rows(text, 10, 8); got != want {
			t.Errorf("%.20q fills %d rows, want %d", text, got, want)
		}
	}
}
