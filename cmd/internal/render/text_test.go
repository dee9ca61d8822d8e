package render

import (
	"testing"
)

func TestTextsCannotDriveTheTerminal(t *testing.T) {
	if got := Visible("a\x1b[31mb\u009b\x07\tc\nd"); got != "a\\u001b[31mb\\u009b\\u0007\tc\nd" {
		t.Errorf("have %q", got)
	}
	for _, test := range []struct {
		in   string
		n    int
		want string
	}{
		{"one", 10, "one"}, {"one\ntwo", 10, "one …"}, {"übermäßig", 5, "über…"}, {"  \n x", 5, "x"}, {"", 5, ""},
	} {
		if got := OneLine(test.in, test.n); got != test.want {
			t.Errorf("%q in %d: have %q, want %q", test.in, test.n, got, test.want)
		}
	}
}

func TestRulesTellNothing(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\n---\n": "a", "---\n\n# A heading\n\n***\n---\n": "# A heading", "---": "---", "---\n===": "===", "日本\n──\n": "日本", "one\n\n 2 \n": "2"} {
		if got := lastSaid(text); got != want {
			t.Errorf("of %q it is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"Go on?": "Go on?", "---\n\n# A heading\n\ntext\n": "# A heading …", "---\nstatus: done\nn: 2\n---\nGo on?": "n: 2 · Go on?", "---": "---", "": ""} {
		if got := question(text, 60); got != want {
			t.Errorf("%q asks %q, want %q", text, got, want)
		}
	}
}
