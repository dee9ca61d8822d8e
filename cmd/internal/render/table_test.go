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
