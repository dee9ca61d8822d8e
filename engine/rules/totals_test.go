package rules

import (
	"testing"

	"wf/protocol"
)

// A limit of tokens holds where providers tell nothing of what they used.
func TestF116EstimatedTokensCountForTheLimit(t *testing.T) {
	s := &State{}
	s.Limits.Tokens = 500
	told := int64(100)
	for i, x := range []struct {
		usage protocol.Usage
		want  int64 // that the limit is reached at; 0 is not
	}{
		{protocol.Usage{Model: "m", Held: 300}, 0},
		{protocol.Usage{Model: "m", Stop: protocol.StopOverflow, Held: 9_000, Window: 8_000}, 0}, // nothing of it was used
		{protocol.Usage{Model: "m", Input: &told}, 0},
		{protocol.Usage{Model: "m", Stop: protocol.StopGivenUp, Held: 150}, 550},
	} {
		s.Totals.add(x.usage)
		b := s.Breached(0, 0, 0, false)
		if (b != nil) != (x.want > 0) || b != nil && (b.Limit != LimitTokens || b.Value != x.want || b.Estimated != 450) {
			t.Errorf("call %d: %+v", i, b)
		}
	}
}
