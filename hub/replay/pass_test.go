package replay

import (
	"fmt"
	"strings"
	"testing"

	"wf/protocol"
)

// Of a long text both the old connection and the new one have the end: what is new of it is not known, and is left out.
func TestALongTextDoesNotComeAgain(t *testing.T) {
	var b Broadcast
	var got []string
	defer b.Subscribe("R", func(d protocol.LiveDelta) { got = append(got, fmt.Sprint(d.N, " ", len(d.Delta.Text))) })()
	long := strings.Repeat("x", openMax)
	say := func(n int64, kind, text string) {
		b.Pass(protocol.LiveDelta{Run: "R", Step: "a#1", N: n, Delta: protocol.Delta{Kind: kind, Text: text}})
	}
	say(1, "thinking", "hm")
	say(2, "text", long+"old")
	b.Lose("R")
	say(1, "thinking", "hm")
	say(5, "text", long[3:]+"old and new")
	say(6, "text", "!")
	b.Lose("R")
	say(1, "text", "another process")
	if want := fmt.Sprintf("1 2, 2 %d, 6 1, 1 15", openMax+3); strings.Join(got, ", ") != want {
		t.Errorf("%s came, want %s", strings.Join(got, ", "), want)
	}
	if all := heard(&b); len(all) != 1 || all[0] != "a#1 text: another process" {
		t.Errorf("a late client hears %d pieces", len(all))
	}
}
