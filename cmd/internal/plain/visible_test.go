package plain_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"wf/cmd/internal/plain"
)

func TestWhatActsIsWrittenOut(t *testing.T) {
	for in, want := range map[string]string{
		"plain, with ä, 漢字, \t and\n":         "plain, with ä, 漢字, \t and\n",
		"a\x1b[31mb":                          `a\u001b[31mb`,
		"\x1b]52;c;cHduZWQ=\x07":              `\u001b]52;c;cHduZWQ=\u0007`,
		"\x1b]0;title\x1b\\":                  `\u001b]0;title\u001b\`,
		"\u009b31m \u0085 \x7f":               `\u009b31m \u0085 \u007f`,
		"\x9b31m":                             "\ufffd31m",
		"\u202eexe.txt\u2066 \u200f":          `\u202eexe.txt\u2066 \u200f`,
		"ze\u200bro so\u00adft \ufeff \u2028": `ze\u200bro so\u00adft \ufeff \u2028`,
		"tag \U000e0041":                      `tag \udb40\udc41`,
		"one\r\ntwo\rthree":                   "one\ntwo\\u000dthree",
		"👩\u200d💻 and क्\u200dष keep their joiners": "👩\u200d💻 and क्\u200dष keep their joiners",
	} {
		if got := plain.Visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Nothing acts, nothing is lost, and JSON stays the same JSON.
func TestVisibleTextDoesNotAct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		got := plain.Visible(s)
		for _, r := range got {
			if plain.Hidden(r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if again := plain.Visible(got); again != got {
			t.Fatalf("%q, and again %q", got, again)
		}
		b, err := json.Marshal(s)
		if err != nil || !utf8.ValidString(got) {
			t.Fatal(err, got)
		}
		var same string
		if err := json.Unmarshal([]byte(plain.Visible(string(b))), &same); err != nil || same != s {
			t.Fatalf("%q became %q, %v", s, same, err)
		}
	})
}
