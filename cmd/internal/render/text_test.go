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
