package agentkit

import (
	"testing"

	"wf/protocol"
)

// M-3: forks of a run ask providers for the prefixes that the run has in their caches.
func TestM03AForkHasTheCacheKeyOfItsOrigin(t *testing.T) {
	run := cacheKey(&protocol.Turn{Run: "A"}, "coder")
	for _, x := range []struct {
		turn protocol.Turn
		role string
		same bool
	}{
		{protocol.Turn{Run: "B", Origin: "A"}, "coder", true},
		{protocol.Turn{Run: "C", Origin: "A"}, "coder", true},
		{protocol.Turn{Run: "B"}, "coder", false},
		{protocol.Turn{Run: "A", Origin: "B"}, "coder", false},
		{protocol.Turn{Run: "B", Origin: "A"}, "tester", false},
	} {
		if same := cacheKey(&x.turn, x.role) == run; same != x.same {
			t.Errorf("%+v, %s: the same key is %v", x.turn, x.role, same)
		}
	}
}
