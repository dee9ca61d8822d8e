package rules

import (
	"iter"
	"math"

	"wf/protocol"
)

// Refold is what a stored snapshot ought to be by the journal up to the event that it belongs to.
func Refold(from Records, events iter.Seq2[protocol.Entry, error], stored *Snapshot) (*Snapshot, error) {
	s := New(from)
	s.tidyAt = math.MaxInt // what the stored state still holds is not dropped either
	if err := s.FoldMore(events); err != nil {
		return nil, err
	}
	s.keepAs(stored.Acts)
	return s.snapshot(), nil
}

// keepAs drops the activations that a stored state dropped at one time or another. Those that the
// rules can still reach stay, so that the stored state is found to lack them.
func (s *State) keepAs(stored []snapAct) {
	kept := map[int]bool{}
	for _, a := range stored {
		kept[a.N] = true
	}
	s.pruneBut(kept)
}
