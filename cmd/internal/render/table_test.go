package render

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableKeepsItsColumns(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, [][]string{{"a", "\x1b[31mrot\x1b[0m", "x"}, {"日本", "b", "y"}, {"c"}}); err != nil {
		t.Fatal(err)
	}
	want := "a     \x1b[31mrot\x1b[0m  x\n日本  b    y\nc\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// On a terminal a last cell that is too long goes on below itself; one whose words have no room is left to the terminal.
func TestALongCellGoesOnBelowItself(t *testing.T) {
	for _, x := range []struct {
		width      int
		cell, want string
	}{
		{20, "some words here", "name  some words\n      here\n"}, {21, "some words here", "name  some words\n      here\n"},
		{22, "some words here", "name  some words here\n"}, {12, "some words here", "name  some\n      words\n      here\n"}, {11, "some words here", "name  some words here\n"},
	} {
		var b bytes.Buffer
		if err := notes(&Screen{Writer: &b, TTY: true, Width: x.width}, [][]string{{"name", x.cell}}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x.want, b.String()); d != "" {
			t.Errorf("%d columns: %s", x.width, d)
		}
	}
}
