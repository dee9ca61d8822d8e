package replay

import (
	"fmt"
	"testing"

	"wf/hub/internal/lately"
	"wf/hub/internal/memfeed"
	"wf/protocol"
)

// A broadcast keeps nothing of runs that nobody drives or hears.
func TestABroadcastForgets(t *testing.T) {
	var b Broadcast
	heard := 0
	stop := b.Subscribe("run", func(protocol.LiveDelta) { heard++ })
	b.Event("run", &protocol.Event{Seq: 1, Type: protocol.EvRunStarted})
	b.Delta("run", "a#1", protocol.Delta{Kind: "text", Text: "x"})
	b.Delta("other", "a#1", protocol.Delta{Kind: "text", Text: "x"})
	b.End("run")
	b.Delta("run", "a#1", protocol.Delta{Kind: "text", Text: "driven again"})
	b.Event("run", &protocol.Event{Seq: 2, Type: protocol.EvDone})
	stop()
	b.End("other")
	if heard != 2 || len(b.runs) != 0 {
		t.Errorf("%d deltas were heard, %d runs are held", heard, len(b.runs))
	}
}

// What is kept for crowds stays within its bounds, and goes with the last of them.
func TestWhatIsKeptForCrowdsIsBounded(t *testing.T) {
	s := shelf{batches: lately.Map[spot, shelved]{Max: shelfBytes}}
	_, leave := s.join("run")
	_, leaveToo := s.join("run")
	var e protocol.Entry
	tip := memfeed.Next(protocol.Entry{}, "tip").CID
	for i := range 100 {
		e = memfeed.Next(e, fmt.Sprint(i))
		at := spot{"run", e.Seq, e.CID}
		s.put(at, tip, []protocol.Entry{{CID: e.CID, Raw: make([]byte, 1<<20)}})
		if s.find(at, tip) == nil || s.find(at, e.CID) != nil {
			t.Fatal("a batch is found under its tip alone")
		}
	}
	if n, bytes := s.batches.Held(); bytes > shelfBytes || n == 0 {
		t.Errorf("%d bytes in %d batches", bytes, n)
	}
	leave()
	leaveToo()
	if n, bytes := s.batches.Held(); bytes != 0 || n != 0 || len(s.runs) != 0 {
		t.Errorf("%d bytes are left", bytes)
	}
}
