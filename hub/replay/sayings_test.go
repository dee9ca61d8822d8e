package replay

import (
	"fmt"
	"strings"
	"testing"

	"wf/protocol"
)

// What is kept for clients that come later is bounded, whatever is said: of a step the newest, of a run of too many
// steps nothing.
func TestWhatIsKeptOfSayingsIsBounded(t *testing.T) {
	count := func(s *sayings) (bytes, pieces int) {
		for _, said := range s.of {
			for i := range said {
				bytes, pieces = bytes+said[i].cost(), pieces+1
			}
		}
		return bytes, pieces
	}
	say := func(s *sayings, step, kind string, size int) {
		t.Helper()
		s.add(protocol.LiveDelta{Step: step, Delta: protocol.Delta{Kind: kind, Text: strings.Repeat("x", size)}})
	}
	var s sayings
	for i := range 100_000 { // a command that writes to both in turn
		say(&s, "a#1", [2]string{"stdout", "stderr"}[i%2], 1)
	}
	if bytes, pieces := count(&s); bytes != s.bytes || pieces != piecesMax+1 {
		t.Errorf("%d pieces of %d bytes, counted as %d", pieces, bytes, s.bytes)
	}
	for i := range 1000 {
		say(&s, "a#1", [2]string{"stdout", "stderr"}[i%2], deltaMax)
	}
	if bytes, pieces := count(&s); bytes != s.bytes || pieces < 2 || bytes > stepMax+deltaMax+4*deltaCost {
		t.Errorf("%d pieces of %d bytes, counted as %d", pieces, bytes, s.bytes)
	}
	for i := range 2 * runMax / openMax {
		say(&s, fmt.Sprint("s#", i), "text", openMax)
		if bytes, _ := count(&s); bytes != s.bytes || bytes > runMax {
			t.Fatalf("%d bytes, counted as %d", bytes, s.bytes)
		}
	}
	for step := range s.of {
		s.remove(step)
	}
	if s.bytes != 0 {
		t.Errorf("nothing is counted as %d", s.bytes)
	}
}
